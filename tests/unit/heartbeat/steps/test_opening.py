"""The opening: notices, and skipped heartbeats."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from arbor.goals.values import GoalLayer, GoalState
from arbor.heartbeat.failure_modes import RecentActivity, RecentHeartbeat
from arbor.heartbeat.focus import mode_of
from arbor.heartbeat.inputs import Opening, Selfhood
from arbor.heartbeat.pacing import ActiveHours, SchedulePolicy
from arbor.heartbeat.situation import Environment, Mode, NoticeKind
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.state_merge import FoundState
from arbor.heartbeat.steps.orientation import background_checks, idle, observe
from arbor.heartbeat.usage import BudgetLevel, NearestLimit
from arbor.heartbeat.views import GoalView
from arbor.heartbeat.working_memory import Thought, WorkingMemory
from arbor.selves.drives import Drive, Drives, DriveState, read_drives
from tests.unit.heartbeat.builders import NOW, goal, intent, percept, proposal, situation
from tests.unit.heartbeat.state_builders import HOUR, heartbeat_of, moment_of, opening_of, run_step

IDLE = "idle: nothing waits, and it reflected at the last heartbeat"
REFLECTED = [RecentHeartbeat(status="done", mode="reflection")]
#: Active hours that begin after 09:30 UTC.
EVENING = ActiveHours(start=time(20), end=time(22), zone=ZoneInfo("UTC"))


def drives_of(**levels: float) -> dict[str, Any]:
    states = {drive: DriveState(level=levels.get(drive.value, 0.5), at=NOW) for drive in Drive}
    return Drives(states=states).model_dump(mode="json")


def new_heartbeat(view: dict[str, Any], opening: Opening | None = None, **changes: Any) -> HeartbeatState:
    """Return a heartbeat that has just begun, after a heartbeat with a reflection."""
    return heartbeat_of(
        situation=situation(**view),
        opening=opening or opening_of(recent_activity=RecentActivity(heartbeats=REFLECTED)),
        energy_start=None,
        **changes,
    )


def test_the_record_starts_with_the_current_energy() -> None:
    assert run_step(observe(new_heartbeat({"energy": 7.5}))).state.energy_start == 7.5


@pytest.mark.parametrize(
    ("view", "changes", "reason"),
    [
        ({}, {}, IDLE),
        ({}, {"trigger": "message"}, ""),
        ({}, {"trigger": "operator"}, ""),
        ({}, {"trigger": "drive"}, IDLE),
        # A person starts a cycle, but its heartbeats are idle when nothing is pending.
        ({}, {"trigger": "cycle"}, IDLE),
        ({"percepts": [percept()]}, {}, ""),
        ({"goals": [goal()]}, {}, ""),
        (
            {"goals": [goal(layer=GoalLayer.ASPIRATION)]},
            {},
            IDLE,
        ),
        (
            {"goals": [goal(rule="survival")]},
            {},
            IDLE,
        ),
        ({"goals": [goal()], "intents": [intent()]}, {}, ""),
        ({"proposals": [proposal()]}, {}, ""),
        ({"heartbeat_number": 5}, {}, ""),
        ({}, {"selfhood": Selfhood(drives=drives_of(curiosity=0.9))}, ""),
        # The drive for rest starts no heartbeat.
        (
            {},
            {"selfhood": Selfhood(drives=drives_of(rest=0.9))},
            IDLE,
        ),
    ],
)
def test_an_idle_heartbeat_ends_at_once_with_its_reason(
    view: dict[str, Any], changes: dict[str, Any], reason: str
) -> None:
    result = run_step(idle(new_heartbeat(view, **changes)))

    heartbeat = result.state
    assert heartbeat.idle == reason
    assert result.changed == ((reason,) if reason else ())
    assert heartbeat.state.idle_heartbeats == (1 if reason else 0)
    assert (heartbeat.next is not None, heartbeat.state.stale_heartbeats) == (
        (True, 1) if reason else (False, None)
    )


@pytest.mark.parametrize(
    ("heartbeats", "goes_on"),
    [
        ([], True),
        (REFLECTED, False),
        ([RecentHeartbeat(status="skipped")] * 2 + REFLECTED, False),
        ([RecentHeartbeat(status="skipped")] * 3 + REFLECTED, True),
        ([RecentHeartbeat(status="failed", mode="reflection")], True),
    ],
)
def test_an_agent_reflects_now_and_then_without_pending_work(
    heartbeats: list[RecentHeartbeat], goes_on: bool
) -> None:
    heartbeat = run_step(
        idle(new_heartbeat({}, opening_of(recent_activity=RecentActivity(heartbeats=heartbeats))))
    ).state
    assert (heartbeat.idle == "") is goes_on


@pytest.mark.parametrize(
    ("goals", "last_mode", "idles"),
    [
        ([goal(state=GoalState.QUEUED)], "goal_pursuit", False),
        ([goal(state=GoalState.QUEUED), goal("sky", layer=GoalLayer.ASPIRATION)], "goal_pursuit", False),
        ([goal(state=GoalState.QUEUED)], "consolidation", True),
        # The reflection has left it queued.
        ([goal(state=GoalState.QUEUED)], "reflection", True),
        ([goal(state=GoalState.QUEUED, blocked_by="the tide")], "goal_pursuit", True),
        ([goal(state=GoalState.BACKBURNER)], "goal_pursuit", True),
        ([goal(state=GoalState.QUEUED), goal("costs", rule="survival")], "goal_pursuit", True),
    ],
)
def test_an_agent_without_an_active_goal_reflects_on_queued_ones(
    goals: list[GoalView], last_mode: str, idles: bool
) -> None:
    done = [RecentHeartbeat(status="done", mode=last_mode), *REFLECTED]
    opening = opening_of(
        recent_activity=RecentActivity(heartbeats=[RecentHeartbeat(status="skipped"), *done])
    )
    heartbeat = run_step(idle(new_heartbeat({"goals": goals}, opening))).state
    assert bool(heartbeat.idle) is idles


def thoughts_in_a_week(**view: Any) -> int:
    """Return the number of thoughts in a week of hourly heartbeats in which the agent decides nothing."""
    recent, thought = list[RecentHeartbeat](), Thought(text="The tide decides.", at=NOW)
    count = 0
    for number in range(7 * 24):
        now = NOW + number * HOUR
        changes = {
            "environment": Environment(now=now),
            "heartbeat_number": number + 2,
            "working_memory": WorkingMemory(thoughts=[thought]),
        }
        opening = opening_of(recent_activity=RecentActivity(heartbeats=recent[:20]))
        found = FoundState(last_heartbeat_at=thought.at)
        heartbeat = new_heartbeat(view | changes, opening, moment=moment_of(now=now), found=found)
        state = run_step(idle(heartbeat)).state
        if state.idle:
            recent.insert(0, RecentHeartbeat(status="skipped"))
        else:
            recent.insert(0, RecentHeartbeat(status="done", mode=mode_of(state.situation)))
            thought, count = Thought(text="The tide decides.", at=now), count + 1
    return count


@pytest.mark.parametrize(
    "view",
    [
        {"goals": [goal(blocked_by="the tide")]},
        {"goals": [goal(blocked_by="the tide")], "intents": [intent()]},
        {"proposals": [proposal(at=NOW - HOUR)]},
        {"goals": [goal(state=GoalState.QUEUED)]},
    ],
)
def test_blocked_goals_and_seen_proposals_cost_few_thoughts(view: dict[str, Any]) -> None:
    # An agent without any of these consolidates its memory at each fifth heartbeat, and reflects in between.
    assert 7 <= thoughts_in_a_week(**view) <= thoughts_in_a_week()
    assert thoughts_in_a_week() < 7 * 24 / 2 < thoughts_in_a_week(goals=[goal()])


def test_a_proposal_since_the_last_heartbeat_wakes_the_agent() -> None:
    # The thought since then is of a conversation, which showed no proposals.
    view = {
        "proposals": [proposal(at=NOW - HOUR)],
        "working_memory": WorkingMemory(thoughts=[Thought(text="Ebb.", at=NOW - HOUR / 2)]),
    }
    for hours, idles in ((2, False), (0.75, True)):
        found = FoundState(last_heartbeat_at=NOW - hours * HOUR)
        assert bool(run_step(idle(new_heartbeat(view, found=found))).state.idle) is idles


def test_a_drive_that_had_stopped_moving_calls_when_it_is_urgent() -> None:
    began = DriveState(level=0.5, at=NOW - 14 * HOUR, building=True)
    drives = Drives(states=dict.fromkeys(Drive, DriveState(at=began.at)) | {Drive.CURIOSITY: began})
    for moved in (4 * HOUR, 14 * HOUR - timedelta(seconds=5)):
        stored = drives.model_copy(update={"until": began.at + moved}).to_json()
        heartbeat = new_heartbeat(
            {}, selfhood=Selfhood(drives=stored), schedule=SchedulePolicy(interval=50 * HOUR)
        )
        state = run_step(idle(heartbeat)).state
        assert state.next is not None
        due = state.next.due_at
        found = read_drives(state.state.drives, due)
        assert state.next.trigger == "drive"
        assert not found.urgent(due - timedelta(seconds=1))
        assert found.urgent(due) == [Drive.CURIOSITY]


@pytest.mark.parametrize(
    ("idle_heartbeats", "shift", "hours"), [(0, 0.0, 1.5), (1, 0.0, 2.25), (1, 0.04, 2.34), (9, 0.0, 4.0)]
)
def test_each_idle_heartbeat_delays_the_next_one(idle_heartbeats: int, shift: float, hours: float) -> None:
    opening = opening_of(
        recent_activity=RecentActivity(heartbeats=REFLECTED), idle_heartbeats=idle_heartbeats
    )
    heartbeat = run_step(idle(new_heartbeat({}, opening, shift=shift))).state

    assert heartbeat.next is not None
    assert (heartbeat.next.due_at - NOW) / HOUR == pytest.approx(hours)
    assert heartbeat.state.idle_heartbeats == idle_heartbeats + 1


@pytest.mark.parametrize(
    ("level", "view", "trigger", "reason"),
    [
        (BudgetLevel.CONSERVATION, {"goals": [goal()]}, "timer", ""),
        (BudgetLevel.DEGRADATION, {"goals": [goal()]}, "timer", ""),
        (BudgetLevel.DEGRADATION, {"goals": [goal(rule="survival")]}, "timer", "serves no goal"),
        (BudgetLevel.DEGRADATION, {}, "operator", ""),
        (BudgetLevel.END_TIMES, {"goals": [goal()]}, "operator", "is for users who wait"),
        (BudgetLevel.END_TIMES, {"environment": Environment(now=NOW, user_waiting=True)}, "timer", ""),
        (BudgetLevel.HALT, {"environment": Environment(now=NOW, user_waiting=True)}, "timer", "is used up"),
    ],
)
def test_a_low_daily_budget_skips_heartbeats(
    level: BudgetLevel, view: dict[str, Any], trigger: str, reason: str
) -> None:
    heartbeat = run_step(idle(new_heartbeat({"degradation": level, **view}, trigger=trigger))).state
    if not reason:
        # The heartbeat may be idle for another reason.
        assert "budget" not in heartbeat.idle
    else:
        assert reason in heartbeat.idle


def test_halted_agents_are_due_after_midnight_at_spread_times() -> None:
    midnight = datetime(2026, 1, 6, tzinfo=UTC)
    for shift in (0.05, -0.02):
        heartbeat = run_step(idle(new_heartbeat({"degradation": BudgetLevel.HALT}, shift=shift))).state
        assert heartbeat.next is not None
        assert heartbeat.next.due_at == midnight + HOUR * abs(shift)
    late = replace(
        new_heartbeat({"degradation": BudgetLevel.HALT}), schedule=SchedulePolicy(interval=timedelta(days=2))
    )
    due = run_step(idle(late)).state.next
    assert due is not None
    assert due.due_at == NOW + timedelta(days=2)


@pytest.mark.parametrize(
    ("level", "hour", "due_in"),
    [
        (BudgetLevel.END_TIMES, 15, 4.08),
        (BudgetLevel.END_TIMES, 21, 3.02),
        (BudgetLevel.END_TIMES, 23.5, 1),
        (BudgetLevel.HALT, 15, 9.02),
        (BudgetLevel.HALT, 21, 3.02),
        (BudgetLevel.HALT, 23.5, 1),
    ],
)
def test_an_agent_goes_on_when_its_budget_is_renewed(level: BudgetLevel, hour: float, due_in: float) -> None:
    now = datetime(2026, 1, 5, tzinfo=UTC) + hour * HOUR
    opening = opening_of(recent_activity=RecentActivity(heartbeats=REFLECTED), idle_heartbeats=9)
    view = {"degradation": level, "environment": Environment(now=now)}
    state = run_step(idle(new_heartbeat(view, opening, shift=0.02))).state
    assert state.next is not None
    assert (state.next.due_at - now) / HOUR == pytest.approx(due_in)


def test_a_halted_agent_waits_for_its_active_hours() -> None:
    hours = ActiveHours(start=time(9), end=time(17), zone=ZoneInfo("UTC"))
    halted = replace(
        new_heartbeat({"degradation": BudgetLevel.HALT}),
        schedule=SchedulePolicy(interval=timedelta(hours=1), hours=hours),
    )
    due = run_step(idle(halted)).state.next
    assert due is not None
    assert due.due_at == datetime(2026, 1, 6, 9, tzinfo=UTC)


def test_a_halted_agent_answers_a_waiting_user_first_thing() -> None:
    hours = ActiveHours(start=time(9), end=time(17), zone=ZoneInfo("UTC"))
    view = {"degradation": BudgetLevel.HALT, "environment": Environment(now=NOW, user_waiting=True)}
    for schedule in (SchedulePolicy(interval=20 * HOUR), SchedulePolicy(interval=HOUR, hours=hours)):
        state = run_step(idle(new_heartbeat(view, shift=0.02, schedule=schedule))).state
        assert state.next is not None
        assert state.next.due_at == datetime(2026, 1, 6, tzinfo=UTC) + schedule.interval * 0.02


@pytest.mark.parametrize(
    ("trigger", "waiting", "runs"), [("timer", False, False), ("event", False, True), ("timer", True, True)]
)
def test_an_agent_outside_its_hours_runs_only_when_requested(trigger: str, waiting: bool, runs: bool) -> None:
    environment = Environment(now=NOW, user_waiting=waiting)
    heartbeat = new_heartbeat({"goals": [goal()], "environment": environment}, trigger=trigger)
    heartbeat = run_step(
        idle(replace(heartbeat, schedule=SchedulePolicy(interval=HOUR, hours=EVENING)))
    ).state

    assert (heartbeat.idle == "") is runs
    if not runs:
        assert heartbeat.idle.startswith("idle: outside its active hours, which begin 2026-01-05 20:00")
        assert heartbeat.next is not None
        assert heartbeat.next.due_at >= datetime(2026, 1, 5, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "after", "changed", "whose", "left"),
    [
        (BudgetLevel.NORMAL, BudgetLevel.NORMAL, (), "your", ""),
        (
            BudgetLevel.NORMAL,
            BudgetLevel.CONSERVATION,
            ("budget: normal → conservation",),
            "your",
            "25% of its tokens",
        ),
        (
            BudgetLevel.NORMAL,
            BudgetLevel.CONSERVATION,
            ("budget: normal → conservation",),
            "your tenant's",
            "25% of its tenant's tokens",
        ),
        (BudgetLevel.HALT, BudgetLevel.NORMAL, ("budget: halt → normal",), "your", "all of it"),
    ],
)
def test_a_change_of_the_budget_level_is_recorded_once(
    before: BudgetLevel, after: BudgetLevel, changed: tuple[str, ...], whose: str, left: str
) -> None:
    nearest = NearestLimit(what="tokens", whose=whose, left=0.25)
    activity = RecentActivity(level=after, nearest_limit=nearest if after is not BudgetLevel.NORMAL else None)
    result = run_step(
        background_checks(new_heartbeat({}, opening_of(recent_activity=activity, level_before=before)))
    )

    level = result.state.effects.level
    assert result.changed[: len(changed)] == changed
    assert result.state.situation.degradation is after
    if changed:
        assert level is not None
        assert (level.before, level.after, level.left) == (before, after, left)
    else:
        assert level is None


def test_notices_reach_the_situation_and_the_agents_state() -> None:
    activity = RecentActivity(stale_goals=["Map the harbour"], nops=3)
    result = run_step(background_checks(new_heartbeat({}, opening_of(recent_activity=activity))))

    kinds = [NoticeKind.STAGNATION, NoticeKind.INVALID_REPLIES]
    assert [notice.kind for notice in result.state.situation.notices] == kinds
    assert [notice["kind"] for notice in result.state.state.notices or ()] == kinds
    assert result.changed == ("noticed stagnation", "noticed invalid replies")


def test_a_step_of_the_opening_is_refused_in_a_later_leg() -> None:
    for step in (background_checks, idle):
        with pytest.raises(RuntimeError, match="before the first call"):
            step(heartbeat_of())


def test_the_last_reflection_is_recognized_by_its_mode() -> None:
    heartbeats = [RecentHeartbeat(status="done", mode=Mode.CONVERSATION.value), *REFLECTED]
    heartbeat = run_step(
        idle(new_heartbeat({}, opening_of(recent_activity=RecentActivity(heartbeats=heartbeats))))
    ).state
    assert heartbeat.idle == "idle: nothing waits, and it reflected 2 heartbeats ago"
