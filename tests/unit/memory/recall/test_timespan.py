"""The time that a query names, parsed from its words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.recall.timespan import TimeSpan, mentioned_span

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def day(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did Sam cook on 18 August, 2023?", "2023-08-18", "2023-08-19"),
        ("Who had dinner on May 3, 2023?", "2023-05-03", "2023-05-04"),
        ("the picture of December 1,2023", "2023-12-01", "2023-12-02"),
        ("on the 8th of December 2023", "2023-12-08", "2023-12-09"),
        ("the run of 2024-02-29", "2024-02-29", "2024-03-01"),
        ("in mid-August 2023", "2023-08-01", "2023-09-01"),
        ("during December 2023", "2023-12-01", "2024-01-01"),
        ("between August 11 and August 15 2023", "2023-08-11", "2023-08-16"),
        ("what happened in 2022", "2022-01-01", "2023-01-01"),
        ("the end of summer 2023", "2023-06-01", "2023-09-01"),
        ("winter of 2023", "2023-12-01", "2024-03-01"),
        ("what she said yesterday", "2026-11-20", "2026-11-21"),
        ("our trip last month", "2026-10-01", "2026-11-01"),
        ("our trip last year", "2025-01-01", "2026-01-01"),
        ("what grew last spring", "2026-03-01", "2026-06-01"),
        ("what she planned last December", "2025-12-01", "2026-01-01"),
        ("three weeks ago", "2026-10-28", "2026-11-04"),
        ("the last two things of 12 days ago, roughly", "2026-11-09", "2026-11-10"),
    ],
)
def test_a_named_time_is_found(text: str, start: str, end: str) -> None:
    assert mentioned_span(text, now=NOW) == TimeSpan(start=day(start), end=day(end))


@pytest.mark.parametrize(("now", "start"), [("2026-01-10", "2024-12-01"), ("2026-03-01", "2025-12-01")])
def test_the_last_winter_is_over(now: str, start: str) -> None:
    span = mentioned_span("what we read last winter", now=day(now))
    assert span is not None
    assert span.start == day(start)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("When did Melanie go camping in June?", "2023-06-15", "2023-03-15"),
        ("the march of June 5", "1999-06-05", "1999-12-05"),
        ("during the winter", "2021-01-31", "2021-07-01"),
    ],
)
def test_a_month_without_a_year_means_that_of_every_year(text: str, inside: str, outside: str) -> None:
    span = mentioned_span(text, now=NOW)
    assert span is not None
    assert span.yearly
    assert span.nearness(day(inside)) > 0.9
    assert span.nearness(day(outside)) < 0.01


@pytest.mark.parametrize(
    "text",
    [
        "",
        "May I march with you?",
        "the fall of Rome",
        "When did James try Cyberpunk 2077?",
        "31 June 2023",
        "2023-19-01",
        "2023-00-10",
        "12 friends of mine",
    ],
)
def test_a_text_without_a_time_has_no_span(text: str) -> None:
    assert mentioned_span(text, now=NOW) is None


def test_nearness_decreases_with_distance_on_both_sides() -> None:
    span = TimeSpan(start=day("2023-05-01"), end=day("2023-06-01"))
    assert span.nearness(day("2023-05-20")) == 1
    assert span.nearness(day("2023-06-08")) == pytest.approx(span.nearness(day("2023-04-24")))
    assert span.nearness(day("2023-06-08")) == pytest.approx(0.3679, abs=1e-4)


def test_candidates_are_looked_for_two_weeks_around_a_span() -> None:
    span = TimeSpan(start=day("2023-05-15"), end=day("2023-05-16"))
    assert span.around() == (day("2023-05-01"), day("2023-05-30"))
    assert TimeSpan(start=span.start, end=span.end, yearly=True).around() is None


MOMENTS = st.datetimes(timezones=st.just(UTC))
PIECES = "last in May 31 June 2023 1 year ago the summer of 0 12 weeks yesterday 2023-02-29 2023-00-00 , three past month dec. 2100"


@given(text=st.lists(st.sampled_from(PIECES.split()), max_size=8).map(" ".join) | st.text(), now=MOMENTS)
def test_any_text_is_read_without_failing(text: str, now: datetime) -> None:
    span = mentioned_span(text, now=now)
    assert span is None or span.start <= span.end


@given(
    start=st.datetimes(max_value=datetime(9990, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    length=st.timedeltas(timedelta(0), timedelta(400)),
    moment=MOMENTS,
    yearly=st.booleans(),
)
def test_nearness_is_from_zero_to_one(
    start: datetime, length: timedelta, moment: datetime, yearly: bool
) -> None:
    assert 0 <= TimeSpan(start=start, end=start + length, yearly=yearly).nearness(moment) <= 1


@pytest.mark.parametrize("now", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
@pytest.mark.parametrize(
    "text", ["last week", "99 years ago", "tonight", "last month", "in winter", "last year"]
)
def test_a_clock_that_is_far_out_breaks_nothing(text: str, now: datetime) -> None:
    span = mentioned_span(text, now=now)
    assert span is not None
    span.around()
    assert 0 <= span.nearness(now) <= 1


def test_a_moment_without_time_zone_is_refused() -> None:
    with pytest.raises(Invalid, match="now must have a time zone"):
        mentioned_span("last week", now=datetime.min)  # noqa: DTZ901
