"""The action that reviews the goals."""

from __future__ import annotations

from apps.goals.services.views import goal_views
from apps.heartbeats.actions.context import GLIMPSE, ActionContext
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.results import ActionOutcome, ActionResult, answer
from arbor.heartbeat.sections.goals import overview


def review_goals(context: ActionContext, decision: Decision) -> ActionResult:
    """Name what wanted attention when the beat began, and bring all goals that are open now, to read. One statement."""
    issues = context.situation.issues
    found = "; ".join(clip(f"{issue.advice}: {issue.text}", GLIMPSE) for issue in issues)
    summary = f"{len(issues)} want attention: {found}" if issues else "nothing wants attention"
    seen = goal_views(agent_id=context.agent_id, traits=None, now=context.now)
    return answer(decision, ActionOutcome.SUCCESS, summary, brought=overview(seen))
