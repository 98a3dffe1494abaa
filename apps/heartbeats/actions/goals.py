"""The action `review_goals`: list goals and their issues."""

from __future__ import annotations

from apps.heartbeats.actions.context import GLIMPSE, ActionContext
from apps.heartbeats.services.goal_situation import goal_views
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.quotations import shorten
from arbor.heartbeat.results import ActionOutcome, ActionResult, answer
from arbor.heartbeat.sections.goals import overview


def review_goals(context: ActionContext, decision: Decision) -> ActionResult:
    """List the issues found when the heartbeat began, and all goals that are open now. One statement."""
    issues = context.situation.issues
    listed = "; ".join(shorten(f"{issue.advice}: {issue.text}", GLIMPSE) for issue in issues)
    summary = f"{len(issues)} want attention: {listed}" if issues else "nothing wants attention"
    goals = goal_views(agent_id=context.agent_id, traits=None, now=context.now)
    return answer(decision, ActionOutcome.SUCCESS, summary, brought=overview(goals))
