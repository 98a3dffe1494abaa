"""`arbor self proposal`: changes to an agent's self that wait for a decision, decided by a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.markup import escape

from apps.selves.models import Proposal
from apps.selves.services.proposals import accept, defer, propose, reject
from arbor.selves.proposals import NewProposal, ProposalKind, ProposalStatus
from config.cli.kit import Output
from config.cli.lookup import find_id
from config.cli.output import ago, cut, short, table
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction

OPERATOR = "operator"
#: The latest that are shown; the console has them all.
SHOWN = 100


@in_agent_transaction
def list_proposals(agent: ChosenAgent, *, with_decided: bool) -> Output:
    """List an agent's pending proposals, the latest first."""
    rows = Proposal.objects.filter(agent_id=agent.id)
    if not with_decided:
        rows = rows.filter(status=ProposalStatus.PENDING)
    found = list(rows.order_by("-created_at")[:SHOWN])
    people: Any = table(
        ("id", "kind", "sure", "status", "put off", "from", "made", "proposal"),
        (
            (
                short(each.id),
                each.kind,
                f"{each.confidence:.2f}",
                each.status,
                each.deferrals or "",
                each.source.split(":")[0],
                ago(each.created_at),
                cut(each.content),
            )
            for each in found
        ),
    )
    told = {"agent": agent.name, "proposals": [_line(each) for each in found]}
    return Output(
        told,
        people=people if found else f"Nothing waits for a decision about {escape(agent.name)}.",
    )


@in_agent_transaction
def add(agent: ChosenAgent, *, text: str, kind: str, confidence: float) -> Output:
    """Add a proposal; the agent decides it at its next heartbeat, or you with `accept`."""
    new = NewProposal(kind=ProposalKind(kind), content=text, confidence=confidence, source=OPERATOR)
    outcome = propose(agent_id=agent.id, proposals=[new])
    made = [*outcome.made, *outcome.known]
    said = "waits for a decision" if outcome.made else "waits already"
    return Output(
        {"agent": agent.name, "proposals": [_line(each) for each in made]},
        people="\n".join(
            f"[bold]{escape(cut(each.content))}[/bold] ({short(each.id)}) {said}." for each in made
        ),
    )


def _decided(agent: ChosenAgent, decide: Callable[..., Proposal], proposal_id: str, reason: str) -> Output:
    decided = decide(
        proposal_id=find_id(agent, Proposal, proposal_id),
        agent_id=agent.id,
        decided_by=actor(),
        reason=reason,
    )
    why = f": {escape(decided.reason)}" if decided.reason else ""
    said = f"[bold]{escape(cut(decided.content))}[/bold] ({short(decided.id)}) is {decided.status}{why}."
    return Output({"agent": agent.name, **_line(decided)}, people=said)


@in_agent_transaction
def accept_one(agent: ChosenAgent, *, proposal_id: str, reason: str) -> Output:
    """Accept a proposal: the change is made."""
    return _decided(agent, accept, proposal_id, reason)


@in_agent_transaction
def reject_one(agent: ChosenAgent, *, proposal_id: str, reason: str) -> Output:
    """Reject a proposal: the change is not made."""
    return _decided(agent, reject, proposal_id, reason)


@in_agent_transaction
def defer_one(agent: ChosenAgent, *, proposal_id: str, reason: str) -> Output:
    """Defer a proposal; after the fifth time it expires."""
    return _decided(agent, defer, proposal_id, reason)


def _line(each: Proposal) -> dict[str, Any]:
    return {
        "id": each.id,
        "kind": each.kind,
        "content": each.content,
        "change": each.change,
        "confidence": each.confidence,
        "evidence": each.evidence,
        "source": each.source,
        "status": each.status,
        "deferrals": each.deferrals,
        "reason": each.reason,
        "decided_by": each.decided_by,
        "created_at": each.created_at,
        "decided_at": each.decided_at,
    }
