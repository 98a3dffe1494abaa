"""Ages of history as settings: days, 0 or empty for ever, and a least age where a record needs one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from arbor.errors import ConfigurationInvalid
from arbor.history import Record, parse_ages, setting_of


def age_of(record: Record, text: str) -> timedelta | None:
    return parse_ages({record: text})[record]


@pytest.mark.parametrize("text", ["0", "", " 0.0 "])
def test_zero_and_empty_mean_for_ever(text: str) -> None:
    assert age_of(Record.AUDIT, text) is None


def test_parts_of_days_are_allowed() -> None:
    assert age_of(Record.HEARTBEATS, "0.5") == timedelta(hours=12)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (Record.AUDIT, "29"),
        (Record.USAGE, "1"),
        (Record.CALLS, "-1"),
        (Record.CALLS, "nan"),
        (Record.CALLS, "inf"),
        (Record.CALLS, "a week"),
    ],
)
def test_an_age_that_makes_no_sense_is_refused(record: Record, text: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=setting_of(record)):
        age_of(record, text)
