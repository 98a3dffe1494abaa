"""Store a memory that a person gives to an agent, with an audit record."""

from __future__ import annotations

from uuid import UUID

from apps.agents.services.profile import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.store.appraisal import lasting
from apps.memories.services.store.remember import Remembered, embed_memories, store
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import NewMemory


def teach_agent(*, tenant_id: UUID, agent_id: UUID, memory: NewMemory, actor: str) -> Remembered:
    """Store a memory, and put on record who gave it, both or neither. It lasts unless it says otherwise.

    Embedded before the transaction opens. Raises NotFound for the agent.
    """
    with tenant_transaction(tenant_id):
        agent_by_id(agent_id)
    memories = [lasting(memory)]
    embedded = embed_memories(tenant_id=tenant_id, agent_id=agent_id, memories=memories)
    with tenant_transaction(tenant_id):
        stored = store(agent_id=agent_id, memories=memories, vectors=embedded.vectors, model=embedded.model)
        record_gift(agent_id=agent_id, memory_id=stored.ids[0], actor=actor, new=bool(stored.stored))
    return stored


def record_gift(*, agent_id: UUID, memory_id: UUID, actor: str, new: bool) -> None:
    """Record in the audit log, in the open transaction, who gave an agent a memory. Raises NotFound for the agent."""
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"gave {agent_by_id(agent_id).name} something to remember",
        detail={"memory_id": str(memory_id), "new": new},
    )
