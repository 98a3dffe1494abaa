"""Due times and idle heartbeats."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.heartbeat.pacing import (
    DRIVE,
    SLOWEST,
    TIMER,
    ActiveHours,
    SchedulePolicy,
    WakeReasons,
    idle_reason,
    next_heartbeat,
    off_hours_reason,
    slowdown,
)

HOUR = timedelta(hours=1)
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
DAY = ActiveHours(start=time(8), end=time(22), zone=BERLIN)
NIGHT = ActiveHours(start=time(22), end=time(6), zone=BERLIN)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("idle_heartbeats", "adaptive", "factor"),
    [
        (0, True, 1.0),
        (1, True, 1.5),
        (2, True, 2.25),
        (3, True, 3.375),
        (4, True, 4.0),
        (10_000, True, 4.0),
        (3, False, 1.0),
    ],
)
def test_each_idle_heartbeat_delays_the_next_one(idle_heartbeats: int, adaptive: bool, factor: float) -> None:
    assert slowdown(idle_heartbeats, adaptive=adaptive) == factor


@pytest.mark.parametrize(
    ("hours", "moment", "within"),
    [
        (DAY, "2026-01-05 06:59", False),  # 07:59 in Berlin
        (DAY, "2026-01-05 07:00", True),
        (DAY, "2026-01-05 20:59", True),
        (DAY, "2026-01-05 21:00", False),
        (DAY, "2026-07-05 06:00", True),  # summer time: two hours before UTC
        (NIGHT, "2026-01-05 21:00", True),
        (NIGHT, "2026-01-05 23:30", True),
        (NIGHT, "2026-01-06 04:59", True),
        (NIGHT, "2026-01-06 05:00", False),
        (NIGHT, "2026-01-05 12:00", False),
    ],
)
def test_hours_are_those_of_a_wall_clock(hours: ActiveHours, moment: str, within: bool) -> None:
    assert hours.contain(at(moment)) is within


@pytest.mark.parametrize(
    ("hours", "moment", "opens"),
    [
        (DAY, "2026-01-05 12:00", "2026-01-05 12:00"),
        (DAY, "2026-01-05 02:00", "2026-01-05 07:00"),
        (DAY, "2026-01-05 22:30", "2026-01-06 07:00"),
        (NIGHT, "2026-01-05 12:00", "2026-01-05 21:00"),
        # The night on which the clock goes forward (29 March 2026, 01:00 UTC), and back (25 October, 01:00 UTC).
        (DAY, "2026-03-28 22:30", "2026-03-29 06:00"),
        (DAY, "2026-10-24 21:30", "2026-10-25 07:00"),
        # A beginning that does not exist that day: 02:30 becomes 03:30.
        (ActiveHours(start=time(2, 30), end=time(9), zone=BERLIN), "2026-03-29 00:00", "2026-03-29 01:30"),
        # Hours that are over at 03:30, or that the clock skips: those of the next day.
        (
            ActiveHours(start=time(2, 30), end=time(3, 15), zone=BERLIN),
            "2026-03-29 00:00",
            "2026-03-30 00:30",
        ),
        (ActiveHours(start=time(2), end=time(2, 30), zone=BERLIN), "2026-03-28 12:00", "2026-03-30 00:00"),
        # A local time that occurs twice: the first occurrence.
        (ActiveHours(start=time(2, 30), end=time(9), zone=BERLIN), "2026-10-24 23:00", "2026-10-25 00:30"),
        # At 02:10 for the second time: the second occurrence of the start.
        (ActiveHours(start=time(2, 30), end=time(9), zone=BERLIN), "2026-10-25 01:10", "2026-10-25 01:30"),
    ],
)
def test_a_heartbeat_outside_the_hours_waits_for_their_start(
    hours: ActiveHours, moment: str, opens: str
) -> None:
    assert hours.at_or_after(at(moment)) == at(opens)


@given(
    moment=st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1)).map(  # noqa: DTZ001 (hypothesis takes naive bounds)
        lambda at: at.replace(tzinfo=UTC)
    ),
    start=st.times(),
    end=st.times(),
    zone=st.sampled_from(
        ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Kiritimati"]
    ),
)
def test_an_opening_is_never_in_the_past_and_at_most_two_days_off(
    moment: datetime, start: time, end: time, zone: str
) -> None:
    assume(start != end)
    hours = ActiveHours(start=start, end=end, zone=ZoneInfo(zone))
    opening = hours.at_or_after(moment)
    assert moment <= opening <= moment + timedelta(hours=50)
    assert hours.contain(opening)


def test_hours_that_end_where_they_begin_are_refused() -> None:
    with pytest.raises(Invalid, match="08:00 twice"):
        ActiveHours(start=time(8), end=time(8), zone=BERLIN)


def test_the_next_heartbeat_is_due_after_a_shifted_interval() -> None:
    due = next_heartbeat(SchedulePolicy(interval=HOUR), now=NOON, idle_heartbeats=0, shift=0.05)
    assert due.due_at == NOON + timedelta(minutes=63)
    assert due.trigger == TIMER


def test_an_urgent_drive_makes_a_heartbeat_due_earlier() -> None:
    schedule = SchedulePolicy(interval=HOUR)
    soon = next_heartbeat(
        schedule, now=NOON, idle_heartbeats=3, shift=0, urgent_at=NOON + timedelta(minutes=20)
    )
    assert (soon.due_at, soon.trigger) == (NOON + timedelta(minutes=20), DRIVE)
    past = next_heartbeat(schedule, now=NOON, idle_heartbeats=0, shift=0, urgent_at=NOON - HOUR)
    assert past.due_at == NOON
    later = next_heartbeat(schedule, now=NOON, idle_heartbeats=0, shift=0, urgent_at=NOON + 2 * HOUR)
    assert (later.due_at, later.trigger) == (NOON + HOUR, TIMER)


def test_an_urgent_drive_waits_for_the_active_hours() -> None:
    late = at("2026-01-05 20:50")
    due = next_heartbeat(
        SchedulePolicy(interval=HOUR, hours=DAY),
        now=late,
        idle_heartbeats=0,
        shift=0,
        urgent_at=late + HOUR / 2,
    )
    assert due.due_at == at("2026-01-06 07:00")


def test_heartbeats_at_the_start_of_the_hours_are_spread() -> None:
    due = next_heartbeat(
        SchedulePolicy(interval=HOUR, hours=DAY),
        now=at("2026-01-05 20:50"),
        idle_heartbeats=0,
        shift=-0.05,
    )
    assert due.due_at == at("2026-01-06 07:03")


@given(idle=st.integers(0, 100), shift=st.floats(-0.05, 0.05))
def test_a_heartbeat_is_due_within_four_shifted_intervals(idle: int, shift: float) -> None:
    due = next_heartbeat(SchedulePolicy(interval=HOUR), now=NOON, idle_heartbeats=idle, shift=shift)
    assert NOON + HOUR * 0.95 <= due.due_at <= NOON + HOUR * SLOWEST * 1.05


def wake_reasons(**changes: Any) -> WakeReasons:
    values: dict[str, Any] = {
        "asked_for": False,
        "percepts": 0,
        "signals": 0,
        "work": 0,
        "proposals": 0,
        "goals_to_activate": False,
        "urgent_drive": False,
        "consolidation": False,
        "since_reflection": 1,
    }
    return WakeReasons(**(values | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"asked_for": True},
        {"percepts": 1},
        {"signals": 1},
        {"work": 1},
        {"proposals": 1},
        {"goals_to_activate": True},
        {"urgent_drive": True},
        {"consolidation": True},
        {"since_reflection": None},
        {"since_reflection": 4},
    ],
)
def test_a_heartbeat_with_a_reason_to_run_is_not_idle(changes: dict[str, Any]) -> None:
    assert idle_reason(wake_reasons(**changes), reflect_every=4) == ""


@pytest.mark.parametrize(
    ("since", "ago"), [(1, "at the last heartbeat"), (2, "2 heartbeats ago"), (3, "3 heartbeats ago")]
)
def test_an_idle_heartbeat_states_its_reason(since: int, ago: str) -> None:
    reason = idle_reason(wake_reasons(since_reflection=since), reflect_every=4)
    assert reason == f"idle: nothing waits, and it reflected {ago}"


@pytest.mark.parametrize(
    ("since_thought", "wonders", "idle"),
    [
        (None, True, False),
        (HOUR / 6, True, True),
        (HOUR, True, False),
        # The reflex policy without an open question thinks once a day.
        (HOUR, False, True),
        (25 * HOUR, False, False),
    ],
)
def test_idle_thoughts_have_a_minimum_interval(
    since_thought: timedelta | None, wonders: bool, idle: bool
) -> None:
    reasons = wake_reasons(since_reflection=9, since_thought=since_thought, wonders=wonders)

    assert bool(idle_reason(reasons, reflect_every=4, pause=HOUR)) is idle
    assert idle_reason(replace(reasons, percepts=1), reflect_every=4, pause=HOUR) == ""


@pytest.mark.parametrize(
    ("since_thought", "ago"),
    [
        (HOUR / 240, "15 s"),
        (HOUR / 60, "1 min"),
        (1.9 * HOUR, "114 min"),
        (2 * HOUR, "2 h"),
        (23 * HOUR, "23 h"),
    ],
)
def test_an_idle_heartbeat_says_when_the_agent_last_thought(since_thought: timedelta, ago: str) -> None:
    reasons = wake_reasons(since_thought=since_thought)

    reason = idle_reason(reasons, reflect_every=4, pause=24 * HOUR)

    assert reason == f"idle: nothing waits, and it last thought {ago} ago"


@pytest.mark.parametrize(
    ("moment", "end"),
    [
        ("2026-01-05 12:00", "2026-01-05 21:00"),
        ("2026-01-05 23:00", "2026-01-05 23:00"),
        # The clock goes back an hour in the night to the 25th of October.
        ("2026-10-24 12:00", "2026-10-24 20:00"),
        ("2026-10-25 12:00", "2026-10-25 21:00"),
    ],
)
def test_the_hours_end_by_the_wall_clock(moment: str, end: str) -> None:
    assert DAY.end_from(at(moment)) == at(end)


@pytest.mark.parametrize(
    ("moment", "end"),
    [("2026-10-25 00:10", "2026-10-25 00:30"), ("2026-10-25 01:10", "2026-10-25 01:30")],
)
def test_an_end_that_occurs_twice_is_the_next_one(moment: str, end: str) -> None:
    hours = ActiveHours(start=time(2), end=time(2, 30), zone=BERLIN)
    assert hours.end_from(at(moment)) == at(end)


def test_hours_over_midnight_end_on_the_next_day() -> None:
    assert NIGHT.end_from(at("2026-01-05 22:30")) == at("2026-01-06 05:00")
    assert NIGHT.end_from(at("2026-01-06 01:00")) == at("2026-01-06 05:00")


def test_a_heartbeat_outside_the_hours_runs_only_when_requested() -> None:
    night = at("2026-01-05 23:00")
    assert off_hours_reason(DAY, now=night, asked_for=False) == (
        "idle: outside its active hours, which begin 2026-01-06 08:00 (Europe/Berlin)"
    )
    assert off_hours_reason(DAY, now=night, asked_for=True) == ""
    assert off_hours_reason(DAY, now=NOON, asked_for=False) == ""
    assert off_hours_reason(None, now=night, asked_for=False) == ""
