"""Actions on the goals."""

from __future__ import annotations

from apps.goals.services.backlogs import lock_backlog, save_backlog
from apps.goals.services.views import goal_views
from apps.heartbeats.acts.desk import GLIMPSE, Desk, answer
from arbor.errors import ArborError
from arbor.goals.requests import NewGoalRequest
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalSource, GoalState
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.results import ActionOutcome, ActionResult, GoalChange, GoalChangeKind
from arbor.heartbeat.sections.goals import overview


def review_goals(desk: Desk, decision: Decision) -> ActionResult:
    """Say what the look at the goals found when the beat began, and bring all that are open now, to read. One statement."""
    issues = desk.situation.issues
    found = "; ".join(clip(f"{issue.advice}: {issue.text}", GLIMPSE) for issue in issues)
    summary = f"{len(issues)} want attention: {found}" if issues else "nothing wants attention"
    seen = goal_views(agent_id=desk.agent_id, traits=None, now=desk.now)
    return answer(decision, ActionOutcome.SUCCESS, summary, brought=overview(seen))


def brainstorm_goals(desk: Desk, decision: Decision) -> ActionResult:
    """Take up what the agent thought of (seed 004, 3.2.5), as far as the backlog has room; say what it refused."""
    backlog = lock_backlog(desk.agent_id, now=desk.now, heartbeat_id=desk.heartbeat_id)
    made: list[GoalRow] = []
    refused: list[str] = []
    for wanted in decision.params["goals"]:
        why = f"\nWhy: {wanted['rationale']}" if wanted["rationale"] else ""
        try:
            goal = backlog.add(
                NewGoalRequest(
                    title=wanted["title"],
                    description=f"{wanted['description']}{why}".strip(),
                    source=GoalSource.CURIOSITY,
                    state=GoalState(wanted["state"]),
                )
            )
        except ArborError as error:
            refused.append(f"not {clip(wanted['title'], GLIMPSE)!r}: {error}")
            continue
        made.append(goal)
        _note(desk, goal, GoalChangeKind.CREATED, f"it is {goal.state}; it was thought of")
    save_backlog(backlog)
    taken = [f"{goal.title!r} is {goal.state}" for goal in made]
    outcome = (
        ActionOutcome.FAILURE if not made else ActionOutcome.PARTIAL if refused else ActionOutcome.SUCCESS
    )
    return answer(decision, outcome, "; ".join([*taken, *refused]))


def reprioritize(desk: Desk, decision: Decision) -> ActionResult:
    """Move a goal in the backlog."""
    backlog = lock_backlog(desk.agent_id, now=desk.now, heartbeat_id=desk.heartbeat_id)
    goal = backlog.move(decision.params["goal_id"], GoalState(decision.params["state"]))
    save_backlog(backlog)
    _note(desk, goal, GoalChangeKind.MOVED, f"it is {goal.state}")
    return answer(decision, ActionOutcome.SUCCESS, f"{goal.title!r} is {goal.state} now")


def _note(desk: Desk, goal: GoalRow, kind: GoalChangeKind, change: str) -> None:
    desk.goal_changes.append(GoalChange(goal_id=str(goal.id), title=goal.title, kind=kind, change=change))
