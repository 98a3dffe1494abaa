"""Guard: which of the agent's boundaries what reached it touches, before anything is thought about it."""

from __future__ import annotations

from apps.heartbeats.handlers.observe import boundaries_in
from arbor.heartbeat.guarding import crossed_by
from arbor.heartbeat.situation import Situation
from arbor.pipeline.engine import Context, NodeResult, Phase


class Guard:
    """Holds the percepts against the boundaries; the agent sees what they touch, and answers accordingly."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put the boundaries that are touched into the situation. No statement."""
        situation: Situation = context["situation"]
        if not situation.percepts:
            return NodeResult()
        vectors = context.get("guarded") or {}
        crossed = crossed_by(situation.percepts, boundaries_in(context), vectors)
        return NodeResult(
            updates={"situation": situation.model_copy(update={"crossed": crossed}), "guarded": None},
            changed=tuple(dict.fromkeys(f"{each.boundary}: {each.why}" for each in crossed)),
        )
