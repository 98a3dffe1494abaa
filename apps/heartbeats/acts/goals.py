"""Actions on the goals."""

from __future__ import annotations

from apps.goals.services.backlog import Backlog
from apps.heartbeats.acts.desk import Desk, answer
from arbor.goals.values import GoalState
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.results import ActionOutcome, ActionResult


def reprioritize(desk: Desk, decision: Decision) -> ActionResult:
    """Move a goal in the backlog."""
    backlog = Backlog.lock(desk.agent_id, now=desk.now)
    goal = backlog.move(decision.params["goal_id"], GoalState(decision.params["state"]))
    backlog.save()
    return answer(decision, ActionOutcome.SUCCESS, f"{goal.title!r} is {goal.state} now")
