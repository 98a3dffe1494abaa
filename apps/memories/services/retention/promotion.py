"""Promote buffer items that matter to memories, and delete expired ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.services.jobs.rounds import Round, make_round
from apps.memories.services.retention.buffer import record_cleared
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.errors import NotFound
from arbor.memory.buffer import MATTERS_AFTER, MATTERS_FROM
from arbor.memory.forgetting import effective_importance
from arbor.memory.values import NewMemory

#: Things that one step promotes: their texts are embedded together.
STEP = 50

# Written out, as it is in the index of what matters.
_MATTERS = f"promoted_to_id IS NULL AND (importance >= {MATTERS_FROM} OR accesses >= {MATTERS_AFTER})"
_WORTH = """
SELECT id, content, role, source, importance, accesses, created_at FROM memories_bufferitem
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND {which} ORDER BY id LIMIT %(step)s
"""
_PROMOTED = """
UPDATE memories_bufferitem b SET promoted_to_id = became.memory_id
FROM unnest(%(ids)s::uuid[], %(memories)s::uuid[]) AS became (id, memory_id)
WHERE b.tenant_id = %(tenant)s AND b.id = became.id
"""
_CLEAR = f"""
DELETE FROM memories_bufferitem WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND expires_at <= now()
    AND NOT ({_MATTERS}) RETURNING promoted_to_id IS NULL
"""  # noqa: S608
# Agents with buffer items that expired, or that mattered.
_WAITING = f"""
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND expires_at <= now()
UNION
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND {_MATTERS}
"""  # noqa: S608


def promote(*, tenant_id: UUID, agent_id: UUID, item_id: UUID, actor: str) -> UUID:
    """Promote a buffer item now, whatever its importance, and return the memory's id. In transactions of its own.

    The audit log records who did. Raises NotFound when this agent has no such item.
    """
    with tenant_transaction(tenant_id):
        rows = fetch(_WORTH.format(which="id = %(item)s"), agent=agent_id, item=item_id, step=1)
    if not rows:
        raise NotFound(f"agent {agent_id} holds no thing {item_id}")
    return _promote(tenant_id, agent_id, rows, actor=actor)[0]


def tend_buffers() -> Round:
    """Promote buffer items that mattered and delete expired ones, agent by agent."""
    return make_round("buffer", waiting=_WAITING, tend=_promote_step)


def _promote_step(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        rows = fetch(_WORTH.format(which=_MATTERS), agent=agent_id, step=STEP)
    if rows:
        _promote(tenant_id, agent_id, rows)
    with tenant_transaction(tenant_id):
        cleared = [never_promoted for (never_promoted,) in fetch(_CLEAR, agent=agent_id)]
        if any(cleared):
            record_cleared(agent_id, sum(cleared), "whose time was over")
    return len(rows) + len(cleared)


def _promote(
    tenant_id: UUID, agent_id: UUID, rows: Sequence[tuple[Any, ...]], *, actor: str | None = None
) -> list[UUID]:
    """Store buffer items as memories, embedded outside any transaction. Interrupted, it can run again to the same effect."""
    memories = [
        NewMemory(
            content=content,
            role=role,
            source=source,
            occurred_at=held_at,
            importance=effective_importance(importance=importance, uses=accesses),
        )
        for _, content, role, source, importance, accesses, held_at in rows
    ]
    ids = list(remember(tenant_id=tenant_id, agent_id=agent_id, memories=memories).ids)
    with tenant_transaction(tenant_id):
        change(_PROMOTED, ids=[row[0] for row in rows], memories=ids)
        if actor is not None:
            record(
                action=AuditAction.OPERATOR_ACT,
                actor=actor,
                agent_id=agent_id,
                message="made a memory of what was only held",
                detail={
                    "item_ids": [str(row[0]) for row in rows],
                    "memory_ids": [str(memory_id) for memory_id in ids],
                },
            )
    return ids
