"""Derive signals from the changes of a backlog."""

from __future__ import annotations

from collections.abc import Iterator

from arbor.goals.rows import BacklogChanges, GoalRow
from arbor.goals.values import GoalState
from arbor.signals import Signal, SignalName, label, signal

_ENDED = {
    GoalState.COMPLETED: SignalName.GOAL_ACHIEVED,
    GoalState.ABANDONED: SignalName.GOAL_ABANDONED,
}


def signals_of_backlog(changes: BacklogChanges) -> Iterator[Signal]:
    """Yield a signal for each goal that was created, changed or closed, each new intent and each percept."""
    for goal in changes.new_goals:
        yield _of_goal(SignalName.GOAL_CREATED, goal)
    for intent in changes.new_intents:
        yield signal(
            SignalName.INTENT_FORMED,
            changes.agent_id,
            intent=intent.id,
            goal=intent.goal_id,
            action=label(intent.action),
        )
    closed = {ending.goal_id: ending.state for ending in changes.closed}
    created = {goal.id for goal in changes.new_goals}
    for goal in (*changes.new_goals, *changes.changed_goals):
        name = _ENDED.get(closed[goal.id]) if goal.id in closed else None
        if name is not None:
            yield _of_goal(name, goal)
        elif goal.id not in created:
            yield _of_goal(SignalName.GOAL_PROGRESS, goal)
    for percept in changes.percepts:
        yield signal(
            SignalName.PERCEPT_RECEIVED,
            changes.agent_id,
            percept=percept.id,
            kind=percept.kind.value,
            urgent=False,
        )


def _of_goal(name: SignalName, goal: GoalRow) -> Signal:
    return signal(
        name,
        goal.agent_id,
        goal=goal.id,
        title=label(goal.title),
        state=goal.state.value,
        fraction=round(goal.fraction, 3),
    )
