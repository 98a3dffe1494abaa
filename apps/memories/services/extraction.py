"""Concepts of memories that were just stored: taken by rule, or by a model, linked, and not taken again (seed 004, 6.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from apps.memories.services.chores import Chore, end_waiting, take_still_waiting, waiting_memories
from apps.memories.services.concepts import link_memories
from apps.tenants.scope import tenant_transaction
from arbor.memory.extraction import concepts_in

#: Memories in one step by rule. A model is asked about fewer.
RULE_BATCH = 50


def extract_by_rule(tenant_id: UUID, agent_id: UUID) -> int:
    """Take the concepts of up to a batch of an agent's waiting memories by rule; return how many it were."""
    with tenant_transaction(tenant_id):
        waiting = waiting_memories(agent_id, Chore.EXTRACT, limit=RULE_BATCH)
    found = {memory_id: concepts_in(excerpt.text) for memory_id, excerpt in waiting}
    if not found:
        return 0
    with tenant_transaction(tenant_id):
        return store_concepts(agent_id, found)


def store_concepts(agent_id: UUID, found: Mapping[UUID, Iterable[tuple[str, float]]]) -> int:
    """Link memories to the concepts found, in the open transaction; return how many were still waiting for that.

    `found` holds (name, strength from 0 to 1) by memory id; a memory with none does not wait any longer either.
    """
    mine = take_still_waiting(agent_id, Chore.EXTRACT, list(found))
    link_memories(agent_id=agent_id, links={memory_id: found[memory_id] for memory_id in mine})
    return end_waiting(Chore.EXTRACT, mine)
