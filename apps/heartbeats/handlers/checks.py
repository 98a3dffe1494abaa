"""Background checks: what is wrong with how the agent has been living, and how much of its day's budget is left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.heartbeats.services.pulse import glances_of, limits_of, spending_of, used_of
from apps.heartbeats.services.usage import Standing, note_level, standing_of
from arbor.goals.intents import IntentStatus
from arbor.goals.review import GoalFlag
from arbor.heartbeat.failure_modes import Pulse, notices_of
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.usage import Degradation
from arbor.pipeline.engine import Context, NodeResult, Phase

#: Of goals that stand still, so many are named.
_NAMED = 3


class Checks:
    """Notices failure modes. No statement while the budget's level stays, and no tenant's limit is to be added up."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put what was noticed, and the level of the budget, into the situation and the agent's state."""
        situation: Situation = context["situation"]
        pulse: Mapping[str, Any] = context["pulse"]
        standing = standing_of(limits_of(pulse), used_of(pulse))
        before = Degradation((pulse["used"] or {}).get("level", Degradation.NORMAL))
        note_level(
            agent_id=UUID(context["agent_id"]),
            public_id=situation.public_id,
            before=before,
            standing=standing,
        )
        notices = notices_of(_pulse(situation, pulse, standing))
        noticed = [notice.model_dump(mode="json") for notice in notices]
        changed = [f"budget: {before} → {standing.level}"] if standing.level is not before else []
        return NodeResult(
            updates={
                "situation": situation.model_copy(update={"notices": notices, "degradation": standing.level}),
                "state": {**context.get("state", {}), "notices": noticed},
            },
            changed=(*changed, *(f"noticed {notice.kind.value.replace('_', ' ')}" for notice in notices)),
        )


def _pulse(situation: Situation, pulse: Mapping[str, Any], standing: Standing) -> Pulse:
    stale = [goal.title for goal in situation.active_goals if GoalFlag.STALE in goal.flags]
    return Pulse(
        beats=glances_of(pulse),
        energy=spending_of(pulse),
        stale_goals=stale[:_NAMED],
        reached_out=pulse["reached_out"],
        nops=pulse["nops"],
        waiting_percepts=pulse["percepts"],
        pending_intents=sum(intent.status is IntentStatus.PENDING for intent in situation.intents),
        stuck_intents=pulse["stuck"],
        stale_neighborhoods=pulse["stale"],
        unsummarized_episodes=pulse["unsummarized"],
        level=standing.level,
        scarcest=standing.nearest,
    )
