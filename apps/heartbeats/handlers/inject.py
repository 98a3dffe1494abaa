"""Inject: goals that come by themselves, before the beat chooses what to turn to (seed 003, 10.1: orient)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.goals.models import Goal
from apps.heartbeats.handlers.goal_changes import Changes
from apps.heartbeats.models import PerceptKind
from arbor.agents.genome import AgentRole
from arbor.clock import Clock
from arbor.errors import ArborError
from arbor.goals.injection import Circumstances, Rule, has_recovered, injected_goals
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.goal_views import GoalView
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.usage import Degradation
from arbor.pipeline.engine import Context, NodeResult, Phase


class InjectGoals:
    """Takes up the goals that the rules make, if any, and closes the one that is over."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Add the goals to the backlog and to what the agent sees; nothing is read or written when there are none."""
        situation: Situation = context["situation"]
        circumstances = _circumstances(situation, context.get("circumstances") or {})
        found = injected_goals(circumstances)
        over = [goal for goal in situation.goals if goal.rule == Rule.SURVIVAL]
        over = over if has_recovered(circumstances) else []
        if not (found or over):
            return NodeResult(updates={"circumstances": None})
        changes = Changes(context, self._clock.now())
        made: list[GoalView] = []
        left_out: list[str] = []
        for goal in over:
            try:
                changes.conclude(goal.id, "there is enough again")
            except ArborError as error:
                left_out.append(f"{goal.title}: not closed, for {error}")
        for injected in found:
            try:
                made.append(_view(changes.inject(injected)))
            except ArborError as error:
                left_out.append(f"{injected.title}: not taken up, for {error}")
        saved = changes.save()
        open_goals = [goal for goal in situation.goals if goal not in over]
        seen = situation.model_copy(update={"goals": [*open_goals, *made]})
        return NodeResult(
            updates={**saved.updates, "situation": seen, "circumstances": None},
            changed=(*saved.changed, *left_out),
        )


def _view(goal: Goal) -> GoalView:
    return GoalView(
        id=str(goal.id),
        title=goal.title,
        description=goal.description,
        state=GoalState(goal.state),
        layer=GoalLayer(goal.layer),
        source=GoalSource(goal.source),
        rule=goal.rule,
    )


def _circumstances(situation: Situation, seen: Mapping[str, Any]) -> Circumstances:
    role = seen.get("role")
    return Circumstances(
        **{
            **seen,
            "role": AgentRole(role) if role else None,
            "open_titles": [goal.title for goal in situation.goals],
            "open_rules": frozenset(goal.rule for goal in situation.goals if goal.rule),
            "has_aspiration": any(goal.layer is GoalLayer.ASPIRATION for goal in situation.goals),
            "budget_runs_low": situation.degradation.rank >= Degradation.DEGRADATION.rank,
            "chances": [
                percept.content for percept in situation.percepts if percept.kind == PerceptKind.ENVIRONMENT
            ],
        }
    )
