"""List, add and decide proposals about an agent's self."""

from __future__ import annotations

from collections.abc import Callable

from rich.markup import escape

from apps.selves.models import Proposal
from apps.selves.services.decisions import ProposalVerdict, decide_proposal
from apps.selves.services.proposals import propose_by_person
from arbor.selves.proposals import NewProposal, ProposalKind, ProposalStatus
from config.cli.kit.columns import OutputColumn, bounded_listing, number, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import find_id
from config.cli.kit.output import cut, format_relative_time, short
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

PROPOSAL_COLUMNS = (
    OutputColumn("id", "id", cell=short),
    OutputColumn("kind", "kind"),
    OutputColumn("confidence", "sure", cell=number),
    OutputColumn("status", "status"),
    OutputColumn("deferrals", "deferred", cell=lambda deferrals: deferrals or ""),
    OutputColumn("source", "from", cell=lambda source: source.split(":")[0]),
    OutputColumn("created_at", "made", cell=format_relative_time),
    OutputColumn("content", "proposal", cell=cut),
    *(OutputColumn(key) for key in ("change", "evidence", "reason", "decided_by", "decided_at")),
)

OPERATOR = "operator"


@in_agent_transaction
def list_proposals(agent: ChosenAgent, *, with_decided: bool) -> Output:
    """List an agent's pending proposals, the latest first."""
    proposals = Proposal.objects.filter(agent_id=agent.id)
    if not with_decided:
        proposals = proposals.filter(status=ProposalStatus.PENDING)
    return bounded_listing(
        "proposals",
        proposals.order_by("-created_at", "-id"),
        PROPOSAL_COLUMNS,
        about={"agent": agent.name},
        empty=f"Nothing waits for a decision about {escape(agent.name)}.",
    )


@in_agent_transaction
def add(agent: ChosenAgent, *, text: str, kind: str, confidence: float) -> Output:
    """Add a proposal. The agent decides it at its next heartbeat, unless you use `accept` or `reject` first."""
    new = NewProposal(kind=ProposalKind(kind), content=text, confidence=confidence, source=OPERATOR)
    outcome = propose_by_person(agent_id=agent.id, new=new)
    shown = [*outcome.made, *outcome.known]
    status = "waits for a decision" if outcome.made else "waits already"
    return Output(
        {"agent": agent.name, "proposals": [row_to_dict(proposal, PROPOSAL_COLUMNS) for proposal in shown]},
        text="\n".join(
            f"[bold]{escape(cut(proposal.content))}[/bold] ({short(proposal.id)}) {status}."
            for proposal in shown
        ),
    )


def _decision(verdict: ProposalVerdict) -> Callable[..., Output]:
    """Return the function of a command that decides a proposal."""

    @in_agent_transaction
    def run(agent: ChosenAgent, *, proposal_id: str, reason: str) -> Output:
        decided = decide_proposal(
            proposal_id=find_id(agent, Proposal, proposal_id),
            decision=verdict,
            agent_id=agent.id,
            decided_by=actor(),
            reason=reason,
        )
        why = f": {escape(decided.reason)}" if decided.reason else ""
        sentence = (
            f"[bold]{escape(cut(decided.content))}[/bold] ({short(decided.id)}) is {decided.status}{why}."
        )
        return Output({"agent": agent.name, **row_to_dict(decided, PROPOSAL_COLUMNS)}, text=sentence)

    return run


accept_one = _decision(ProposalVerdict.ACCEPT)
reject_one = _decision(ProposalVerdict.REJECT)
defer_one = _decision(ProposalVerdict.DEFER)
