"""Inject: goals that come by themselves, before the beat chooses what to turn to (seed 003, 10.1: orient)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.heartbeats.handlers.goal_changes import Changes
from apps.heartbeats.models import PerceptKind
from arbor.agents.genome import AgentRole
from arbor.clock import Clock
from arbor.errors import ArborError
from arbor.goals.injection import Circumstances, injected_goals
from arbor.goals.values import GoalLayer
from arbor.heartbeat.situation import GoalView, Situation
from arbor.heartbeat.usage import Degradation
from arbor.pipeline.engine import Context, NodeResult, Phase


class InjectGoals:
    """Takes up the goals that the rules make, if any."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Add the goals to the backlog and to what the agent sees; nothing is read or written when there are none."""
        situation: Situation = context["situation"]
        found = injected_goals(_circumstances(situation, context.get("circumstances") or {}))
        if not found:
            return NodeResult(updates={"circumstances": None})
        changes = Changes(context, self._clock.now())
        made = []
        for injected in found:
            try:
                goal = changes.inject(injected)
            except ArborError as error:
                # The backlog is full, or holds such a goal by another name: there is nothing to add.
                changes.leave_out(injected, str(error))
                continue
            made.append(
                GoalView(
                    id=str(goal.id),
                    title=goal.title,
                    description=goal.description,
                    state=goal.state,
                    layer=goal.layer,
                    source=goal.source,
                    rule=goal.rule,
                )
            )
        saved = changes.save()
        seen = situation.model_copy(update={"goals": [*situation.goals, *made]})
        return NodeResult(
            updates={**saved.updates, "situation": seen, "circumstances": None}, changed=saved.changed
        )


def _circumstances(situation: Situation, seen: Mapping[str, Any]) -> Circumstances:
    role = seen.get("role")
    return Circumstances(
        **{
            **seen,
            "role": AgentRole(role) if role else None,
            "open_rules": frozenset(goal.rule for goal in situation.goals if goal.rule),
            "has_aspiration": any(goal.layer is GoalLayer.ASPIRATION for goal in situation.goals),
            "budget_runs_low": situation.degradation.rank >= Degradation.DEGRADATION.rank,
            "chances": [
                percept.content for percept in situation.percepts if percept.kind == PerceptKind.ENVIRONMENT
            ],
        }
    )
