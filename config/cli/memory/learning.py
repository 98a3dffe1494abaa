"""`arbor memory practise` and `source`: what is learned about a memory later on."""

from __future__ import annotations

import click

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Memory
from apps.memories.services.store.practice import record_outcome
from apps.memories.services.store.provenance import add_source
from apps.tenants.scope import tenant_transaction
from arbor.memory.trust import DEFAULT_SOURCE_TRUST, Source
from config.cli.memory.finding import find_id
from config.cli.output import json_option, show
from config.cli.tenancy import actor, choose_agent, tenant_option


@click.command("practise")
@click.argument("agent")
@click.argument("memory_id", metavar="ID")
@click.option("--success/--failure", default=None, help="Whether it worked.")
@tenant_option
@json_option
def practise(
    agent: str, memory_id: str, success: bool | None, tenant_slug: str | None, as_json: bool
) -> None:
    """Count how a procedure worked out when it was followed.

    \b
    Examples:
      arbor memory practise Vega 4cd01f7e --success
      arbor memory practise Vega 4cd01f7e --failure
    """
    if success is None:
        raise click.UsageError("say how it worked out: --success or --failure")
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_id(chosen, Memory, memory_id)
        practised = record_outcome(agent_id=chosen.id, memory_id=found, success=success)
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor(),
            agent_id=chosen.id,
            message=f"told {chosen.name} how a procedure worked out",
            detail={"memory_id": str(found), "success": success},
        )
    told = {
        "agent": chosen.name,
        "id": found,
        "successes": practised.successes,
        "failures": practised.failures,
        "success_rate": round(practised.success_rate, 4),
    }
    times = practised.successes + practised.failures
    show(told, as_json=as_json, people=f"It has worked out {practised.successes} of {times} times.")


@click.command("source")
@click.argument("agent")
@click.argument("memory_id", metavar="ID")
@click.option("--kind", required=True, help="What kind of source: person, document…")
@click.option("--reference", required=True, help="Which one: Ana, harbour-log.")
@click.option(
    "--trust",
    type=click.FloatRange(0, 1),
    default=DEFAULT_SOURCE_TRUST,
    show_default=True,
    help="How far it is trusted.",
)
@tenant_option
@json_option
def source(
    agent: str,
    memory_id: str,
    kind: str,
    reference: str,
    trust: float,
    tenant_slug: str | None,
    as_json: bool,
) -> None:
    """Note another source of a fact; trust in the fact never falls by it. The same source counts once.

    \b
    Example: arbor memory source Vega 4cd01f7e --kind document --reference harbour-log --trust 0.9
    """
    says = Source(kind=kind, reference=reference, trust=trust)
    chosen = choose_agent(agent, tenant_slug)
    with tenant_transaction(chosen.tenant_id):
        found = find_id(chosen, Memory, memory_id)
        trusted = add_source(agent_id=chosen.id, memory_id=found, source=says)
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor(),
            agent_id=chosen.id,
            message=f"noted another source of what {chosen.name} knows",
            detail={"memory_id": str(found), "kind": kind, "reference": reference, "trust": trust},
        )
    told = {"agent": chosen.name, "id": found, "trust": round(trusted, 4)}
    show(told, as_json=as_json, people=f"It is trusted by {trusted:.2f} now.")
