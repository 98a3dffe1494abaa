"""Find memories that wait under a maintenance flag of `Upkeep`, store what was found out about them, and clear the flag."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Left

from apps.memories.models import Memory, Upkeep
from apps.memories.services.graph.concepts import link_memories
from apps.memories.services.jobs import queries
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.memory.extraction import READ_CHARACTERS, concepts_in
from arbor.memory.maintenance_calls import Excerpt, weighed

#: Replies that leave a memory out until the rule decides about it: each of them is paid for.
MAX_TRIES = 3
#: Memories in one step by rule. A model is asked about fewer.
RULE_BATCH = 50


class MaintenanceFlag(StrEnum):
    """The maintenance flags of this module, by their columns of `Upkeep`."""

    #: Concepts are to be taken from the memory.
    EXTRACT = "unextracted"
    #: A model is to say what it is worth.
    WEIGH = "unweighed"


_TRIES = {MaintenanceFlag.EXTRACT: "extract_tries", MaintenanceFlag.WEIGH: "weigh_tries"}


def agents_with(flag: MaintenanceFlag) -> str:
    """Return SQL for `make_round`: the agents of tenant `t.id` of whose memories one waits."""
    return queries.AGENTS_WITH_FLAG.replace("{flag}", flag.value)


def waiting_memories(
    agent_id: UUID, flag: MaintenanceFlag, *, limit: int, without: Collection[UUID] = ()
) -> list[tuple[UUID, Excerpt]]:
    """Return up to `limit` of the agent's active memories that wait, the oldest first. One statement."""
    rows = fetch(
        queries.WAITING_MEMORIES.replace("{flag}", flag.value),
        agent=agent_id,
        longest=READ_CHARACTERS,
        limit=limit,
        without=list(without),
    )
    return [
        (memory_id, Excerpt(text=text, role=role, type=type_, at=time_text(at)))
        for memory_id, text, role, type_, at in rows
    ]


def claim_still_waiting(agent_id: UUID, flag: MaintenanceFlag, ids: Collection[UUID]) -> list[UUID]:
    """Lock those of these memories that still wait, and return them: what another worker has done is left alone.

    The agent's mind is locked first, as by everybody who changes it. Two statements.
    """
    lock_minds([agent_id])
    waiting = Upkeep.objects.filter(agent_id=agent_id, memory_id__in=list(ids), **{flag.value: True})
    return list(waiting.order_by("memory_id").select_for_update().values_list("memory_id", flat=True))


def end_waiting(flag: MaintenanceFlag, ids: Sequence[UUID]) -> int:
    """Clear the maintenance flag of these memories. One statement."""
    if not ids:
        return 0
    return int(Upkeep.objects.filter(memory_id__in=list(ids)).update(**{flag.value: False}))


def note_left_out(agent_id: UUID, flag: MaintenanceFlag, ids: Collection[UUID]) -> dict[UUID, int]:
    """Count that a reply left these memories out; return the counts of those that still wait.

    In the open transaction, the mind locked. Three statements, none for none.
    """
    if not ids:
        return {}
    lock_minds([agent_id])
    waiting = Upkeep.objects.filter(agent_id=agent_id, memory_id__in=list(ids), **{flag.value: True})
    waiting.update(**{_TRIES[flag]: F(_TRIES[flag]) + 1})
    return dict(waiting.values_list("memory_id", _TRIES[flag]))


def time_text(at: datetime) -> str:
    """Return a moment as models read it."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


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
    memories = Memory.objects.filter(agent_id=agent_id, id__in=list(memory_ids))
    texts = list(memories.values_list("id", Left("content", READ_CHARACTERS))) if memory_ids else []
    found = {memory_id: concepts_in(text) for memory_id, text in texts}
    return store_concepts(agent_id, found) if found else 0


def store_weights(agent_id: UUID, scores: Mapping[UUID, float]) -> int:
    """Give memories the mean of their importance and a model's, in the open transaction; return how many still waited.

    `scores` are from 0 to 1. What was to be remembered for good, with an importance of 1, keeps it.
    """
    mine = claim_still_waiting(agent_id, MaintenanceFlag.WEIGH, list(scores))
    if not mine:
        return 0
    memories = Memory.objects.filter(agent_id=agent_id, id__in=mine).only("tenant_id", "importance")
    changed = []
    for memory in memories.order_by("id").select_for_update():
        importance = weighed(memory.importance, scores[memory.id])
        if importance != memory.importance:
            memory.importance = importance
            changed.append(memory)
    # One bounded update for a batch: the memory's row, otherwise cold, is written once after it was stored.
    Memory.objects.bulk_update(changed, ["importance"])
    return end_waiting(MaintenanceFlag.WEIGH, mine)
