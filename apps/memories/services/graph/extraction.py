"""Store the concepts of new memories, extracted once by rule or by a model (seed 004, 6.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from uuid import UUID

from apps.memories.services.graph.concepts import link_memories
from apps.memories.services.jobs.maintenance_flags import (
    MaintenanceFlag,
    claim_still_waiting,
    end_waiting,
    waiting_memories,
)
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.memory.extraction import READ_CHARACTERS, concepts_in

#: Memories in one step by rule. A model is asked about fewer.
RULE_BATCH = 50

_TEXTS = """
SELECT id, left(content, %(longest)s) FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = ANY(%(ids)s::uuid[])
"""


def extract_by_rule(tenant_id: UUID, agent_id: UUID) -> int:
    """Extract the concepts of a batch of an agent's waiting memories by rule; return the number of memories."""
    with tenant_transaction(tenant_id):
        waiting = waiting_memories(agent_id, MaintenanceFlag.EXTRACT, limit=RULE_BATCH)
    found = {memory_id: concepts_in(excerpt.text) for memory_id, excerpt in waiting}
    if not found:
        return 0
    with tenant_transaction(tenant_id):
        return store_concepts(agent_id, found)


def store_concepts(agent_id: UUID, found: Mapping[UUID, Iterable[tuple[str, float]]]) -> int:
    """Link memories to the concepts found, in the open transaction; return how many were still waiting for that.

    `found` holds (name, strength from 0 to 1) by memory id; a memory with none does not wait any longer either.
    """
    mine = claim_still_waiting(agent_id, MaintenanceFlag.EXTRACT, list(found))
    link_memories(agent_id=agent_id, links={memory_id: found[memory_id] for memory_id in mine})
    return end_waiting(MaintenanceFlag.EXTRACT, mine)


def extract_left_out(agent_id: UUID, memory_ids: Collection[UUID]) -> int:
    """Extract concepts by rule from memories that a model repeatedly left out, in the open transaction; return how many."""
    texts = fetch(_TEXTS, agent=agent_id, ids=list(memory_ids), longest=READ_CHARACTERS) if memory_ids else []
    return (
        store_concepts(agent_id, {memory_id: concepts_in(text) for memory_id, text in texts}) if texts else 0
    )
