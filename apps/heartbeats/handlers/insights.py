"""Insights: what the agent saw about itself becomes a proposal, for a later beat to decide (seed 000, 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from apps.memories.models import Memory
from apps.selves.services.proposals import propose
from arbor.errors import ArborError, Invalid
from arbor.heartbeat.guarding import paths_of
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.reply import IdentityInsight, InsightKind, Reply
from arbor.ids import read_id
from arbor.pipeline.engine import Context, NodeResult, Phase
from arbor.selves.preferences import check_preference
from arbor.selves.proposals import LEAST_INSIGHT, MOST_EVIDENCE, NewProposal, ProposalKind


class IdentityInsights:
    """Puts insights into the queue; one that is unsure, or rests on nothing the agent remembers, is dropped."""

    phase = Phase.INSIDE

    def run(self, context: Context) -> NodeResult:
        """Propose. No statement without an insight, four with any."""
        reply: Reply = context["reply"]
        if not reply.identity_insights:
            return NodeResult()
        agent_id = UUID(context["agent_id"])
        own = _own_memories(agent_id, reply.identity_insights)
        proposals: list[NewProposal] = []
        dropped: list[dict[str, Any]] = []
        paths = paths_of("identity_insights", reply.identity_insights, context.get("untaken", []))
        for path, insight in zip(paths, reply.identity_insights, strict=True):
            try:
                proposals.append(_proposal(insight, own, source=f"heartbeat:{context['heartbeat_id']}"))
            except ArborError as error:
                dropped.append({"path": path, "value": insight.model_dump_json(), "reason": str(error)})
        proposed = propose(agent_id=agent_id, proposals=proposals)
        record = {**context["record"], "dropped": [*context["record"].get("dropped", []), *dropped]}
        return NodeResult(
            updates={"record": record},
            changed=(
                *(f"proposed: {clip(each.content, 120)}" for each in proposed.made),
                *(f"proposed already: {clip(each.content, 120)}" for each in proposed.known),
                *(f"fell out of the queue: {clip(each.content, 120)}" for each in proposed.expired),
            ),
        )


def _proposal(insight: IdentityInsight, own: set[str], *, source: str) -> NewProposal:
    confidence = LEAST_INSIGHT if insight.confidence is None else insight.confidence
    if confidence < LEAST_INSIGHT:
        raise Invalid(f"an insight into oneself needs a confidence of at least {LEAST_INSIGHT:g}")
    evidence = [each for each in insight.evidence if each.strip().lower() in own]
    if not evidence:
        raise Invalid(
            "an insight into oneself rests on memories: give the ids of some, as shown, under evidence"
        )
    is_preference = insight.kind is InsightKind.PREFERENCE
    return NewProposal(
        kind=ProposalKind.PREFERENCE if is_preference else ProposalKind.IDENTITY,
        content=insight.content.strip(),
        confidence=confidence,
        source=source,
        change=_preferred(insight.content) if is_preference else {"aspect": insight.kind.value},
        evidence=evidence[:MOST_EVIDENCE],
    )


def _preferred(content: str) -> dict[str, str]:
    key, colon, value = content.partition(":")
    if not colon:
        raise Invalid("a preference is written key: value, such as tone: brief")
    key, value = check_preference(key, value)
    return {"key": key, "value": value}


def _own_memories(agent_id: UUID, insights: Iterable[IdentityInsight]) -> set[str]:
    """Return those of the ids given as evidence that are memories of the agent."""
    given = {each.strip().lower() for insight in insights for each in insight.evidence}
    ids = [found for each in given if (found := read_id(each)) is not None]
    if not ids:
        return set()
    return {
        str(each)
        for each in Memory.objects.filter(agent_id=agent_id, id__in=ids).values_list("id", flat=True)
    }
