"""`arbor proposal`: changes to an agent's self that wait for a decision, decided by a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.markup import escape

from apps.selves.models import Proposal
from apps.selves.services.proposals import accept, defer, propose, reject
from apps.tenants.scope import tenant_transaction
from arbor.selves.proposals import NewProposal, ProposalKind, ProposalStatus
from config.cli.memory.finding import find_id, short
from config.cli.memory.listing import cut
from config.cli.output import ago, json_option, show, table
from config.cli.tenancy import actor, choose_agent, tenant_option

#: Kinds whose content says all; the others name what they change.
_PLAIN = (ProposalKind.FACT, ProposalKind.INSIGHT, ProposalKind.LEARNING, ProposalKind.PATTERN)
OPERATOR = "operator"
#: The latest that are shown; the console has them all.
SHOWN = 100


@click.group()
def proposal() -> None:
    """Proposals: changes to an agent's self that wait for its decision, or yours. ID is an id, or the end of one."""


@proposal.command("list")
@click.argument("agent")
@click.option("--all", "with_decided", is_flag=True, help="Decided ones, too.")
@tenant_option
@json_option
def list_them(agent: str, with_decided: bool, tenant_slug: str | None, as_json: bool) -> None:
    """List an agent's proposals, the latest first.

    \b
    Example: arbor proposal list Vega
    """
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        rows = Proposal.objects.filter(agent_id=chosen.id)
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
    told = {"agent": chosen.name, "proposals": [_line(each) for each in found]}
    show(
        told,
        as_json=as_json,
        people=people if found else f"Nothing waits for a decision about {escape(chosen.name)}.",
    )


@proposal.command("add")
@click.argument("agent")
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in _PLAIN]),
    default=ProposalKind.FACT.value,
    show_default=True,
    help="What it is.",
)
@click.option(
    "--confidence", type=click.FloatRange(0, 1), default=0.7, show_default=True, help="How sure you are."
)
@tenant_option
@json_option
def add(agent: str, text: str, kind: str, confidence: float, tenant_slug: str | None, as_json: bool) -> None:
    """Propose something to an agent; it decides at its next heartbeat, or you with `accept`.

    \b
    Example: arbor proposal add Vega "The river floods in March."
    """
    chosen = choose_agent(agent, tenant_slug)
    new = NewProposal(kind=ProposalKind(kind), content=text, confidence=confidence, source=OPERATOR)
    with tenant_transaction(chosen.tenant_id):
        outcome = propose(agent_id=chosen.id, proposals=[new])
    made = [*outcome.made, *outcome.known]
    said = "waits for a decision" if outcome.made else "waits already"
    show(
        {"agent": chosen.name, "proposals": [_line(each) for each in made]},
        as_json=as_json,
        people="\n".join(
            f"[bold]{escape(cut(each.content))}[/bold] ({short(each.id)}) {said}." for each in made
        ),
    )


def _decide(name: str, do: Callable[..., Proposal], summary: str) -> None:
    @proposal.command(name, help=f"{summary}\n\n\b\nExample: arbor proposal {name} Vega 0c5512aa")
    @click.argument("agent")
    @click.argument("proposal_id", metavar="ID")
    @click.option("--reason", default="", help="Why; it is kept.")
    @tenant_option
    @json_option
    def decide(agent: str, proposal_id: str, reason: str, tenant_slug: str | None, as_json: bool) -> None:
        chosen = choose_agent(agent, tenant_slug)
        with tenant_transaction(chosen.tenant_id):
            decided = do(
                proposal_id=find_id(chosen, Proposal, proposal_id),
                agent_id=chosen.id,
                decided_by=actor(),
                reason=reason,
            )
        why = f": {escape(decided.reason)}" if decided.reason else ""
        said = f"[bold]{escape(cut(decided.content))}[/bold] ({short(decided.id)}) is {decided.status}{why}."
        show({"agent": chosen.name, **_line(decided)}, as_json=as_json, people=said)


_decide("accept", accept, "Let what is proposed become a part of the agent.")
_decide("reject", reject, "Let what is proposed not become a part of the agent.")
_decide("defer", defer, "Put the decision off; at the fifth time the proposal expires.")


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
