"""Durations and moments as command-line values."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import click
import pytest

from arbor.workflows.durations import format_duration
from config.cli.kit.output import format_relative_time
from config.cli.kit.values import DurationType, ExpiryType, HoursType, MomentType, NumberRange


@pytest.mark.parametrize(
    ("typed", "seconds"), [("30", 30), ("30s", 30), ("5m", 300), ("1.5h", 5400), ("2 D", 172800)]
)
def test_a_duration_has_a_unit_or_is_in_seconds(typed: str, seconds: int) -> None:
    assert DurationType().convert(typed, None, None) == timedelta(seconds=seconds)


@pytest.mark.parametrize("typed", ["", "soon", "-5m", "5 weeks", "9" * 400])
def test_an_invalid_duration_is_refused(typed: str) -> None:
    with pytest.raises(click.BadParameter):
        DurationType().convert(typed, None, None)


@pytest.mark.parametrize("typed", ["nan", "inf", "-inf", "0.5", "one"])
def test_a_number_is_finite_and_in_its_range(typed: str) -> None:
    assert NumberRange(min=1).convert("1.5", None, None) == 1.5
    with pytest.raises(click.BadParameter):
        NumberRange(min=1).convert(typed, None, None)


@pytest.mark.parametrize(
    "typed", ["always", "08:00", "08:00+02:00-22:00", "08:00-22:00-06:00", "08:00-22:00Z"]
)
def test_hours_have_two_ends_without_an_offset(typed: str) -> None:
    assert HoursType().convert("22:00 - 06:30", None, None) == (time(22), time(6, 30))
    with pytest.raises(click.BadParameter, match="08:00-22:00"):
        HoursType().convert(typed, None, None)


def test_a_moment_without_an_offset_is_utc() -> None:
    assert MomentType().convert("2026-12-24", None, None) == datetime(2026, 12, 24, tzinfo=UTC)
    assert MomentType().convert("2026-12-24T18:00+01:00", None, None) == datetime(
        2026, 12, 24, 17, tzinfo=UTC
    )
    for typed in ("Christmas", "9999-12-31T23:59-10:00"):
        with pytest.raises(click.BadParameter, match="2026-12-24"):
            MomentType().convert(typed, None, None)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (30, "30s"),
        (90, "90s"),
        (300, "5m"),
        (3600, "1h"),
        (172800, "2d"),
        (0.5, "0.5s"),
        (1_000_001, "1000001s"),
    ],
)
def test_a_duration_is_printed_in_the_form_of_its_input(seconds: float, words: str) -> None:
    assert format_duration(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(("seconds", "words"), [(-190, "3 m ago"), (7300, "in 2 h"), (-1, "1 s ago")])
def test_a_moment_is_printed_as_the_time_until_or_since_it(seconds: int, words: str) -> None:
    assert format_relative_time(datetime.now(UTC) + timedelta(seconds=seconds)) == words
    assert format_relative_time(None) == "never"


@pytest.mark.parametrize(
    ("typed", "reason"), [("-2d", "is over"), ("2001-01-01", "is over"), ("soon", "is no date")]
)
def test_an_expiry_must_be_in_the_future(typed: str, reason: str) -> None:
    with pytest.raises(click.BadParameter, match=reason):
        ExpiryType().convert(typed, None, None)
