"""Filters of a recall, and refused values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from arbor.errors import Invalid
from arbor.memory.recall_request import EVERYTHING, RecallFilter
from arbor.memory.values import MemoryType

MAY = datetime(2024, 5, 1, tzinfo=UTC)


def test_a_filter_that_says_nothing_is_everything() -> None:
    assert RecallFilter() == EVERYTHING


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"min_importance": 1.5}, "min_importance must be 0 to 1, got 1.5"),
        ({"min_trust": -0.1}, "min_trust must be 0 to 1, got -0.1"),
        ({"since": MAY, "until": MAY}, "since must be before until"),
        ({"since": datetime(2024, 5, 1)}, "since must have a time zone"),  # noqa: DTZ001
        ({"until": datetime.min}, "until must have a time zone"),  # noqa: DTZ901
        ({"types": {"bogus"}}, "types must be of episodic, .*; got bogus"),
        ({"types": {MemoryType.SEMANTIC, "dream"}}, "got dream"),
        ({"session": "a\0b"}, "session must have no NUL"),
        ({"without_session": "a\0b"}, "without_session must have no NUL"),
        ({"concept": "a\0b"}, "without NUL"),
        ({"concept": "  "}, "a concept is named"),
        ({"min_importance": float("nan")}, "min_importance must be 0 to 1, got nan"),
        ({"concept": ""}, "a concept is named by its id or its name"),
    ],
)
def test_an_impossible_filter_is_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        RecallFilter(**parts)


def test_types_may_be_written_as_words() -> None:
    written: Any = {"semantic"}
    assert RecallFilter(types=written) == RecallFilter(types=frozenset({MemoryType.SEMANTIC}))
