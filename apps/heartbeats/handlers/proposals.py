"""Proposals: what the agent decided about changes to itself takes effect (seed 000, 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any
from uuid import UUID

from apps.selves.models import Proposal
from apps.selves.services.proposals import accept, defer, reject
from arbor.clock import Clock
from arbor.errors import ArborError, NotFound
from arbor.heartbeat.quoting import clip
from arbor.heartbeat.reply import ProposalChoice, ProposalDecision, Reply
from arbor.pipeline.engine import Context, NodeResult, Phase

_CHOICES: Mapping[ProposalChoice, Callable[..., Proposal]] = MappingProxyType(
    {ProposalChoice.ACCEPT: accept, ProposalChoice.REJECT: reject, ProposalChoice.DEFER: defer}
)


class ProcessProposals:
    """Applies the reply's decisions; one that cannot be applied is dropped with its reason, the others stand."""

    phase = Phase.INSIDE

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, context: Context) -> NodeResult:
        """Accept, reject, or put off. No statement without a decision."""
        reply: Reply = context["reply"]
        if not reply.proposal_decisions:
            return NodeResult()
        done: list[str] = []
        dropped: list[dict[str, Any]] = []
        for place, decision in enumerate(reply.proposal_decisions):
            try:
                proposal = self._apply(context, decision)
            except ArborError as error:
                path, value = f"proposal_decisions[{place}]", decision.model_dump_json()
                dropped.append({"path": path, "value": value, "reason": str(error)})
            else:
                done.append(
                    f"{decision.decision} {proposal.kind}: {clip(proposal.content, 120)} ({proposal.reason})"
                )
        record = {**context["record"], "dropped": [*context["record"].get("dropped", []), *dropped]}
        return NodeResult(updates={"record": record}, changed=tuple(done))

    def _apply(self, context: Context, decision: ProposalDecision) -> Proposal:
        try:
            proposal_id = UUID(decision.proposal_id)
        except ValueError:
            raise NotFound(f"there is no proposal {decision.proposal_id!r}; use the ids as shown") from None
        return _CHOICES[decision.decision](
            proposal_id=proposal_id,
            agent_id=UUID(context["agent_id"]),
            decided_by=f"heartbeat:{context['heartbeat_id']}",
            reason=decision.reason,
            now=self._clock.now(),
        )
