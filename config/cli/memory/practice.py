"""Record how a procedure worked out, and further sources of a fact."""

from __future__ import annotations

import click

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Memory
from apps.memories.services.store.provenance import add_source, record_outcome
from arbor.memory.trust import Source
from config.cli.kit import Output
from config.cli.lookup import find_id
from config.cli.tenancy import ChosenAgent, actor, in_agent_transaction


@in_agent_transaction
def record_practice(agent: ChosenAgent, *, memory_id: str, success: bool | None) -> Output:
    """Record the outcome of following a procedure."""
    if success is None:
        raise click.UsageError("say how it worked out: --success or --failure")
    found = find_id(agent, Memory, memory_id)
    practised = record_outcome(agent_id=agent.id, memory_id=found, success=success)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor(),
        agent_id=agent.id,
        message=f"told {agent.name} how a procedure worked out",
        detail={"memory_id": str(found), "success": success},
    )
    value = {
        "agent": agent.name,
        "id": found,
        "successes": practised.successes,
        "failures": practised.failures,
        "success_rate": round(practised.success_rate, 4),
    }
    times = practised.successes + practised.failures
    return Output(value, people=f"It has worked out {practised.successes} of {times} times.")


@in_agent_transaction
def add_another_source(
    agent: ChosenAgent, *, memory_id: str, kind: str, reference: str, trust: float
) -> Output:
    """Add a source to a fact; trust in the fact never falls by it. The same source counts once."""
    says = Source(kind=kind, reference=reference, trust=trust)
    found = find_id(agent, Memory, memory_id)
    trusted = add_source(agent_id=agent.id, memory_id=found, source=says)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor(),
        agent_id=agent.id,
        message=f"noted another source of what {agent.name} knows",
        detail={"memory_id": str(found), "kind": kind, "reference": reference, "trust": trust},
    )
    value = {"agent": agent.name, "id": found, "trust": round(trusted, 4)}
    return Output(value, people=f"It is trusted by {trusted:.2f} now.")
