"""Giving an agent something to remember, by a person's hand."""

from __future__ import annotations

from uuid import UUID

from apps.agents.services.profile import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.appraisal import lasting
from apps.memories.services.remember import Remembered, remember
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import NewMemory


def teach_agent(*, tenant_id: UUID, agent_id: UUID, memory: NewMemory, actor: str) -> Remembered:
    """Store a memory, and put on record who gave it. It lasts unless it says otherwise. Raises NotFound for the agent."""
    with tenant_transaction(tenant_id):
        agent = agent_by_id(agent_id)
    stored = remember(tenant_id=tenant_id, agent_id=agent_id, memories=[lasting(memory)])
    with tenant_transaction(tenant_id):
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"gave {agent.name} something to remember",
            detail={"memory_id": str(stored.ids[0]), "new": bool(stored.stored)},
        )
    return stored
