"""Consolidate: while memory is tended, the agent is asked about what it has long held and keeps doing (seed 000, 5)."""

from __future__ import annotations

from uuid import UUID

from apps.selves.services.promotion import look_for_proposals
from apps.selves.services.sight import PROPOSALS_SHOWN
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.self_views import ProposalView
from arbor.heartbeat.situation import Situation
from arbor.pipeline.engine import Context, NodeResult, Phase


class Consolidate:
    """Makes proposals of what is ready to become a part of the self; the beat itself may decide about them."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Put new proposals into the queue and in front of the agent."""
        found = look_for_proposals(agent_id=UUID(context["agent_id"]))
        situation: Situation = context["situation"]
        gone = {str(each.id) for each in found.proposed.expired}
        shown = [each for each in situation.proposals if each.id not in gone]
        shown += [
            ProposalView(
                id=str(each.id),
                kind=each.kind,
                content=each.content,
                confidence=each.confidence,
                evidence=len(each.evidence),
            )
            for each in found.proposed.made
        ]
        shown.sort(key=lambda each: -each.confidence)
        changed = [f"proposed: {clip(each.content, 120)}" for each in found.proposed.made]
        changed += [f"fell out of the queue: {clip(each.content, 120)}" for each in found.proposed.expired]
        if found.let_go:
            changed.append(f"let go of {found.let_go} old experiences")
        return NodeResult(
            updates={"situation": situation.model_copy(update={"proposals": shown[:PROPOSALS_SHOWN]})},
            changed=tuple(changed),
        )
