"""Guard: which of the agent's boundaries are touched by what reached it, and by what it would keep for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.heartbeats.handlers.terms import boundaries_in
from arbor.heartbeat.guarding import crossed_by, not_taken, reply_within_boundaries
from arbor.heartbeat.situation import Situation
from arbor.pipeline.engine import Context, NodeResult, Phase
from arbor.selves.boundary_check import Vector


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


def taken_within(context: Context, *, vectors: Mapping[str, Vector] | None = None) -> dict[str, Any]:
    """Return what the context holds of the reply once it was held against the boundaries; nothing if it crosses none.

    What is not taken is dropped, on record; `crossings` are for `feel`, which notes them, and for `record`, which tells;
    `untaken` are the paths of this turn's items that are left out, by which the others keep the places they had.
    """
    untaken = context.get("untaken", [])
    reply, crossings = reply_within_boundaries(
        context["reply"], boundaries_in(context), vectors, untaken=untaken
    )
    before = context.get("crossings", [])
    found = [each.model_dump(mode="json") for each in crossings]
    # What is taken nevertheless was noted by its words already when it is looked at by its meaning.
    new = [each for each in found if each["reason"] or each not in before]
    if not new:
        return {}
    record = context["record"]
    dropped = [
        {"path": each.path, "value": each.value, "reason": each.reason} for each in not_taken(crossings)
    ]
    return {
        "reply": reply,
        "untaken": [*untaken, *(each["path"] for each in dropped)],
        "crossings": [*before, *new],
        "record": {**record, "dropped": [*record.get("dropped", []), *dropped]},
    }
