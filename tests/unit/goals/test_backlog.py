"""The goals of a backlog: added, moved, blocked and placed, with effects on other goals."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from arbor.errors import AlreadyExists, ArborError, Invalid, LimitReached, NotFound, TransitionIllegal
from arbor.goals.hierarchy import ChildGoal
from arbor.goals.rows import GoalRow
from arbor.goals.values import (
    FEELING_OF_PROGRESS,
    MAX_ACTIVE,
    MAX_NEW_PER_HEARTBEAT,
    MAX_QUEUED,
    NOTE_LENGTH,
    GoalLayer,
    GoalSource,
    GoalState,
    NewGoalRequest,
)
from tests.unit.goals.builders import HEARTBEAT, LONG_AGO, NOW, backlog_of, goal_row

A, Q, B, C, X = (
    GoalState.ACTIVE,
    GoalState.QUEUED,
    GoalState.BACKBURNER,
    GoalState.COMPLETED,
    GoalState.ABANDONED,
)


def some_goals(count: int, state: GoalState = A) -> list[GoalRow]:
    return [goal_row(f"Goal {number} {state}", state=state) for number in range(count)]


@pytest.mark.parametrize(
    ("source", "active", "queued", "expected"),
    [
        (GoalSource.USER_REQUEST, 0, 0, A),
        (GoalSource.USER_REQUEST, MAX_ACTIVE, 0, Q),
        (GoalSource.USER_REQUEST, MAX_ACTIVE, MAX_QUEUED, B),
        (GoalSource.CURIOSITY, 0, 0, Q),
        (GoalSource.CURIOSITY, 0, MAX_QUEUED, B),
    ],
)
def test_a_goal_starts_in_the_state_of_its_source_or_lower(
    source: GoalSource, active: int, queued: int, expected: GoalState
) -> None:
    backlog = backlog_of(*some_goals(active), *some_goals(queued, Q))
    goal = backlog.add(NewGoalRequest(title=" Chart the coast ", source=source))
    assert (goal.title, goal.state, goal.heartbeat_id) == ("Chart the coast", expected, HEARTBEAT)


@pytest.mark.parametrize("state", [A, Q, B])
def test_a_derived_goal_starts_in_the_state_of_its_parent(state: GoalState) -> None:
    parent = goal_row("Coast", state=state)
    wanted = NewGoalRequest(title="Ford", source=GoalSource.DERIVED, parent_id=str(parent.id))
    goal = backlog_of(parent).add(wanted)
    assert (goal.state, goal.parent_id) == (state, parent.id)


@pytest.mark.parametrize(
    ("wanted", "error", "why"),
    [
        ({"title": ""}, Invalid, "1 to 300 characters"),
        ({"title": "  "}, Invalid, "1 to 300 characters"),
        ({"title": "x" * 301}, Invalid, "1 to 300 characters, got 301"),
        ({"title": "nul\0"}, Invalid, "NUL character"),
        ({"title": "half \ud800"}, Invalid, "half a surrogate pair"),
        ({"title": "Ford", "description": "half \ud800"}, Invalid, "a goal's description must not contain"),
        ({"title": "Ford", "blocked_by": "half \ud800"}, Invalid, "a goal's blocker must not contain"),
        ({"title": "Ford", "expected_reward": 1.5}, Invalid, "is 0 to 1, got 1.5"),
        ({"title": "map  the RIVER"}, AlreadyExists, "called 'map  the RIVER' already"),
        ({"title": "Mapping rivers"}, AlreadyExists, "says the same as 'Mapping rivers'"),
        ({"title": "Ford", "parent_id": uuid4()}, NotFound, "there is no open goal"),
        ({"title": "Ford", "blocked_by": str(uuid4())}, NotFound, "there is no open goal"),
        ({"title": "Ford", "blocked_by": "x" * 501}, Invalid, "at most 500 characters, got 501"),
        ({"title": "Ford", "state": C}, TransitionIllegal, "a new goal is active, queued or backburner"),
    ],
)
def test_a_refused_goal_does_not_change_the_backlog(
    wanted: dict[str, Any], error: type[ArborError], why: str
) -> None:
    backlog = backlog_of(goal_row("Map the river"))
    with pytest.raises(error, match=why):
        backlog.add(NewGoalRequest(**wanted))
    assert not backlog.changes()
    assert backlog.counts.open == 1


def test_one_heartbeat_adds_three_goals_at_most_and_a_person_more() -> None:
    goals = [goal_row(f"Goal {number}", heartbeat_id=HEARTBEAT) for number in range(MAX_NEW_PER_HEARTBEAT)]
    with pytest.raises(LimitReached, match="at most 3 new goals"):
        backlog_of(*goals).add(NewGoalRequest(title="One more"))
    backlog_of(*goals, heartbeat_id=uuid4()).add(NewGoalRequest(title="One more"))
    backlog_of(*goals, heartbeat_id=None).add(NewGoalRequest(title="One more"))


@pytest.mark.parametrize(
    ("state", "to", "reason", "error", "why"),
    [
        (Q, C, "", TransitionIllegal, "can become active, backburner, abandoned, not completed"),
        (B, A, "", TransitionIllegal, "can become queued, abandoned, not active"),
        (A, X, " ", Invalid, "needs a reason"),
        (Q, A, "", LimitReached, "at most 3 goals are active"),
    ],
)
def test_only_legal_moves_are_made_and_only_where_there_is_room(
    state: GoalState, to: GoalState, reason: str, error: type[ArborError], why: str
) -> None:
    goal = goal_row("Ford", state=state)
    backlog = backlog_of(goal, *some_goals(MAX_ACTIVE))
    with pytest.raises(error, match=why):
        backlog.move(goal.id, to, reason=reason)
    assert (goal.state, bool(backlog.changes())) == (state, False)


@pytest.mark.parametrize(
    ("to", "reason", "ended"),
    [
        (C, "", {"fraction": 1.0, "completed_at": NOW, "abandoned_at": None, "abandonment_reason": ""}),
        (
            X,
            " It is dry. ",
            {"fraction": 0.4, "completed_at": None, "abandoned_at": NOW, "abandonment_reason": "It is dry."},
        ),
    ],
)
def test_a_closed_goal_is_stamped_and_no_longer_in_the_backlog(
    to: GoalState, reason: str, ended: dict[str, Any]
) -> None:
    goal = goal_row(fraction=0.4)
    backlog = backlog_of(goal)
    assert backlog.move(goal.id, to, reason=reason) is goal
    assert {name: getattr(goal, name) for name in ended} == ended
    assert (goal.state, goal.touched_at) == (to, NOW)
    with pytest.raises(NotFound):
        backlog.goal(goal.id)
    assert backlog.title_of(str(goal.id)) == "Map"


@pytest.mark.parametrize("wrong", [uuid4(), "not-an-id"])
def test_a_missing_goal_raises_not_found(wrong: object) -> None:
    backlog = backlog_of(goal_row())
    with pytest.raises(NotFound, match=f"there is no open goal {wrong}"):
        backlog.goal(str(wrong))
    assert backlog.title_of(str(wrong)) == ""
    backlog.count_heartbeat(str(wrong))
    assert not backlog.changes()


@pytest.mark.parametrize("state", [A, Q, B])
def test_a_goal_at_full_progress_is_completed_in_any_state(state: GoalState) -> None:
    goal = goal_row(state=state)
    backlog = backlog_of(goal)
    backlog.progress(goal.id, note=" All\0 of it\ud800 ", fraction=1)
    changes = backlog.changes()
    assert (goal.state, goal.completed_at) == (C, NOW)
    assert [note.text for note in changes.notes] == ["All\ufffd of it\ufffd"]
    assert [row.outcome for row in changes.satisfactions] == ["success"]
    assert [(closed.goal_id, closed.state) for closed in changes.closed] == [(goal.id, C)]


def test_progress_updates_a_goal_and_raises_its_valence() -> None:
    goal = goal_row(fraction=0.2)
    backlog = backlog_of(goal)
    backlog.progress(goal.id, fraction=0.5)
    assert (goal.fraction, goal.emotional_valence, goal.touched_at) == (0.5, FEELING_OF_PROGRESS, NOW)
    backlog.progress(goal.id, fraction=0.4)
    assert (goal.fraction, goal.emotional_valence) == (0.4, FEELING_OF_PROGRESS)
    for wrong in (-0.1, 1.5):
        with pytest.raises(Invalid, match=f"0 to 1, got {wrong}"):
            backlog.progress(goal.id, fraction=wrong)


def test_a_note_has_a_limit() -> None:
    goal = goal_row()
    backlog = backlog_of(goal)
    backlog.progress(goal.id, note="x" * NOTE_LENGTH)
    with pytest.raises(Invalid, match="a goal's note must have at most 4,000 characters, got 4,001"):
        backlog.progress(goal.id, note="x" * (NOTE_LENGTH + 1))


def test_a_heartbeat_spent_on_a_goal_counts_as_effort() -> None:
    goal = goal_row(effort=3)
    backlog = backlog_of(goal)
    backlog.count_heartbeat(goal.id)
    backlog.count_heartbeat(str(goal.id))
    assert (goal.effort, goal.touched_at) == (5, NOW)
    assert backlog.changes().changed_goals == (goal,)


def test_a_goal_closed_by_rule_has_no_satisfaction() -> None:
    goal = goal_row()
    backlog = backlog_of(goal)
    backlog.move(goal.id, C, by_rule=True)
    changes = backlog.changes()
    assert (goal.state, changes.satisfactions, changes.closed) == (C, (), ())


@pytest.mark.parametrize(("by_person", "notified"), [(False, []), (True, ["action_result"])])
def test_the_agent_is_notified_of_what_a_person_closes(by_person: bool, notified: list[str]) -> None:
    goal = goal_row()
    backlog = backlog_of(goal, heartbeat_id=None if by_person else HEARTBEAT)
    backlog.move(goal.id, X, reason="It is dry.")
    percepts = backlog.changes().percepts
    assert [percept.kind for percept in percepts] == notified
    assert all(
        percept.content == "Your goal 'Map' was abandoned by a person: It is dry."
        and percept.detail == {"goal": str(goal.id)}
        for percept in percepts
    )


def test_a_goal_above_an_ended_one_is_completed_by_its_parts() -> None:
    whole = goal_row()
    part = goal_row(title="Part", parent_id=whole.id)
    backlog = backlog_of(whole, part, heartbeat_id=None)
    backlog.end(part.id, closer="the workflow daily")
    (percept,) = backlog.changes().percepts
    assert percept.content == "Your goal 'Map' was completed by its parts."


@pytest.mark.parametrize(
    ("abandoned", "state", "contents"),
    [("", C, []), ("too late", X, ["Your goal 'Map' was abandoned by the workflow daily: too late."])],
)
def test_a_queued_goal_ends_with_its_cause(abandoned: str, state: GoalState, contents: list[str]) -> None:
    goal = goal_row(state=Q)
    backlog = backlog_of(goal, heartbeat_id=None)
    backlog.end(goal.id, abandoned=abandoned, closer="the workflow daily")
    assert goal.state == state
    assert [percept.content for percept in backlog.changes().percepts] == contents


def test_goals_cannot_block_each_other_in_a_circle() -> None:
    boat, reef, port = (goal_row(title) for title in ("Boat", "Reef", "Port"))
    backlog = backlog_of(boat, reef, port)
    backlog.block(reef.id, str(boat.id))
    backlog.block(port.id, f" {reef.id} ")
    for goal in (boat, reef):
        with pytest.raises(Invalid, match="cannot wait for itself"):
            backlog.block(goal.id, str(port.id))
    assert (port.blocked_by, port.blocked_by_goal_id) == ("", reef.id)
    backlog.block(port.id, " no diver ")
    assert (port.blocked_by, port.blocked_by_goal_id) == ("no diver", None)
    backlog.block(port.id, "")
    assert (port.blocked_by, port.blocked_by_goal_id) == ("", None)


def test_a_goal_may_wait_for_goals_that_a_seed_put_in_a_circle() -> None:
    boat, reef, port = (goal_row(title) for title in ("Boat", "Reef", "Port"))
    boat.blocked_by_goal_id, reef.blocked_by_goal_id = reef.id, boat.id
    assert backlog_of(boat, reef, port).block(port.id, str(boat.id)).blocked_by_goal_id == boat.id


def test_a_goal_that_is_closed_blocks_no_other() -> None:
    boat, reef = goal_row("Boat"), goal_row("Reef")
    reef.blocked_by_goal_id = boat.id
    backlog = backlog_of(boat, reef)
    backlog.move(boat.id, C)
    assert reef.blocked_by_goal_id is None
    # The goal was not worked on, so its time is unchanged.
    assert (reef.touched_at, backlog.changes().changed_goals) == (LONG_AGO, (boat, reef))


def test_completion_rises_but_not_over_what_is_open() -> None:
    top = goal_row("Coast")
    middle, side = goal_row("Reef", parent_id=top.id), goal_row("Port", parent_id=top.id)
    low = goal_row("Shoal", parent_id=middle.id)
    backlog = backlog_of(top, middle, side, low)
    backlog.move(low.id, C)
    assert (middle.state, top.state, top.fraction) == (C, A, 0.5)
    assert backlog.reached == [middle]
    backlog.move(side.id, X, reason="silted up")
    assert (top.state, backlog.reached) == (C, [middle, top])
    assert len(backlog.changes().satisfactions) == 4


@pytest.mark.parametrize(
    ("ended", "to", "state", "fraction"),
    [
        ([], X, A, 0.0),
        ([X], X, A, 0.0),
        ([C], X, C, 1.0),
        ([X], C, C, 1.0),
    ],
)
def test_parts_that_ended_earlier_count_with_the_last(
    ended: list[GoalState], to: GoalState, state: GoalState, fraction: float
) -> None:
    top = goal_row("Coast")
    part = goal_row("Reef", parent_id=top.id)
    backlog = backlog_of(top, part, ended={top.id: [ChildGoal(state=before) for before in ended]})
    backlog.move(part.id, to, reason="gone")
    assert (top.state, top.fraction) == (state, fraction)


def test_a_parent_has_the_progress_of_its_parts_or_a_stated_one() -> None:
    top = goal_row("Coast")
    first, second = goal_row("Reef", parent_id=top.id), goal_row("Port", parent_id=top.id)
    backlog = backlog_of(top, first, second)
    backlog.progress(first.id, fraction=0.5)
    assert top.fraction == 0.25
    backlog.progress(top.id, fraction=0.9)
    backlog.progress(first.id, fraction=0.7)
    assert (top.fraction, top.fraction_by_hand) == (0.9, True)


def test_goals_are_placed_without_cycles_and_not_too_deep() -> None:
    chain = [goal_row("Level 0")]
    for level in range(1, 5):
        chain.append(goal_row(f"Level {level}", parent_id=chain[-1].id))
    backlog = backlog_of(*chain)
    with pytest.raises(Invalid, match="part of itself"):
        backlog.place(chain[0].id, chain[-1].id)
    with pytest.raises(Invalid, match="at most 5 deep"):
        backlog.add(NewGoalRequest(title="Deeper", parent_id=chain[-1].id))
    assert backlog.place(chain[1].id, None).parent_id is None
    assert backlog.place(chain[0].id, chain[1].id).parent_id == chain[1].id


@pytest.mark.parametrize(("by_hand", "expected"), [(False, 0.0), (True, 0.7)])
def test_a_goal_without_its_only_part_has_no_progress(by_hand: bool, expected: float) -> None:
    whole = goal_row("Bay", fraction=0.7, fraction_by_hand=by_hand)
    part = goal_row("Reef", parent_id=whole.id, fraction=0.7)
    backlog_of(whole, part).place(part.id, None)
    assert (whole.state, whole.fraction) == (A, expected)


def test_a_goal_has_the_mean_progress_of_its_remaining_parts() -> None:
    whole = goal_row("Bay")
    begun, idle = goal_row("Port", parent_id=whole.id, fraction=0.2), goal_row("Cape", parent_id=whole.id)
    backlog = backlog_of(whole, begun, idle, ended={whole.id: [ChildGoal(state=C)]})
    backlog.place(idle.id, None)
    assert whole.fraction == pytest.approx(0.6)
    backlog.place(begun.id, None)
    assert (whole.state, backlog.reached) == (C, [whole])


def test_only_changes_since_the_last_save_are_written() -> None:
    goal = goal_row()
    backlog = backlog_of(goal)
    assert not backlog.changes()
    added = backlog.add(NewGoalRequest(title="Ford"))
    backlog.set_deadline(added.id, NOW)
    backlog.set_deadline(goal.id, NOW)
    changes = backlog.changes()
    assert (changes.new_goals, changes.changed_goals, changes.at) == ((added,), (goal,), NOW)
    backlog.mark_saved()
    assert not backlog.changes()
    backlog.count_heartbeat(added.id)
    assert backlog.changes().changed_goals == (added,)


def test_a_full_layer_refuses_a_goal_that_another_accepts() -> None:
    goals = [
        goal_row(f"Aspiration number {place}", state=B, layer=GoalLayer.ASPIRATION) for place in range(10)
    ]
    backlog = backlog_of(*goals)

    with pytest.raises(LimitReached, match="at most 10 goals of the layer aspiration"):
        backlog.add(NewGoalRequest(title="Be wise", layer=GoalLayer.ASPIRATION))
    assert backlog.add(NewGoalRequest(title="Learn to swim", layer=GoalLayer.TASK)).layer is GoalLayer.TASK
