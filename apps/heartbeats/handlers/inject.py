"""Inject: goals that come by themselves, before the beat chooses what to turn to (seed 003, 10.1: orient)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps.heartbeats.handlers.goal_changes import Changes
from apps.heartbeats.models import PerceptKind
from arbor.agents.genome import AgentRole, AgentTraits
from arbor.clock import Clock
from arbor.errors import ArborError
from arbor.goals.injection import Circumstances, Rule, has_recovered, injected_goals
from arbor.goals.ordering import Scale, weigh
from arbor.goals.rows import GoalRow
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.goal_sight import scale_of
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
        seen = {**(context.get("circumstances") or {})}
        scale = seen.pop("scale", {})
        circumstances = _circumstances(situation, seen)
        found = injected_goals(circumstances)
        over = [goal for goal in situation.goals if goal.rule == Rule.SURVIVAL]
        over = over if has_recovered(circumstances) else []
        if not (found or over):
            return NodeResult(updates={"circumstances": None})
        now = self._clock.now()
        changes = Changes(context, now)
        made: list[GoalView] = []
        left_out: list[str] = []
        for goal in over:
            try:
                changes.conclude(goal.id, "there is enough again")
            except ArborError as error:
                left_out.append(f"{goal.title}: not closed, for {error}")
        for injected in found:
            try:
                made.append(_view(changes.inject(injected), _scale(scale, now)))
            except ArborError as error:
                left_out.append(f"{injected.title}: not taken up, for {error}")
        saved = changes.save()
        open_goals = [goal for goal in situation.goals if goal not in over]
        # In order, as the beat saw the others.
        goals = sorted([*open_goals, *made], key=lambda goal: (-goal.priority, goal.id))
        return NodeResult(
            updates={
                **saved.updates,
                "situation": situation.model_copy(update={"goals": goals}),
                "circumstances": None,
            },
            changed=(*saved.changed, *left_out),
        )


def _scale(seen: Mapping[str, Any], now: datetime) -> Scale:
    traits = seen.get("traits")
    return scale_of(seen, traits=AgentTraits.model_validate(traits) if traits else None, now=now)


def _view(goal: GoalRow, scale: Scale) -> GoalView:
    source = GoalSource(goal.source)
    found = weigh(
        scale,
        source,
        fraction=goal.fraction,
        deadline=goal.deadline,
        stated_reward=goal.expected_reward,
        actions=(),
    )
    return GoalView(
        id=str(goal.id),
        title=goal.title,
        description=goal.description,
        state=GoalState(goal.state),
        layer=GoalLayer(goal.layer),
        source=source,
        priority=round(found, 4),
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
