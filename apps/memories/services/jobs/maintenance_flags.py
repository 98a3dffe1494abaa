"""Find memories with a maintenance flag of `Upkeep`, store the job's results, and clear the flag."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Left

from apps.memories.models import Memory, Upkeep
from apps.memories.services.graph.concepts import link_memories
from apps.memories.services.jobs import queries
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.statements import fetch
from arbor.clock import format_time
from arbor.memory.maintenance.calls import Excerpt, combine_importances
from arbor.memory.text.extraction import READ_CHARACTERS, concepts_in

#: The number of replies that left out a memory, each of which costs money, after which the rule decides about that memory.
MAX_TRIES = 3


class MaintenanceFlag(StrEnum):
    """The maintenance flags of this module, by their columns of `Upkeep`."""

    #: Concepts are to be extracted.
    EXTRACT = "unextracted"
    #: A model is to appraise the importance.
    APPRAISE = "unweighed"


_TRIES_COLUMNS = {MaintenanceFlag.EXTRACT: "extract_tries", MaintenanceFlag.APPRAISE: "weigh_tries"}


def agents_with(flag: MaintenanceFlag) -> str:
    """Return SQL for `run_job`: the agents of tenant `t.id` with a flagged memory."""
    return queries.AGENTS_WITH_FLAG.replace("{flag}", flag.value)


def waiting_memories(
    agent_id: UUID, flag: MaintenanceFlag, *, limit: int, without: Collection[UUID] = ()
) -> list[tuple[UUID, Excerpt]]:
    """Return up to `limit` of the agent's active memories with a flag, except those of `without`, the oldest first. One statement."""
    rows = fetch(
        queries.WAITING_MEMORIES.replace("{flag}", flag.value),
        agent=agent_id,
        longest=READ_CHARACTERS,
        limit=limit,
        without=list(without),
    )
    return [
        (memory_id, Excerpt(text=text, role=role, type=type_, at=format_time(at), session=session))
        for memory_id, text, role, type_, at, session in rows
    ]


def claim_still_waiting(agent_id: UUID, *, flag: MaintenanceFlag, ids: Collection[UUID]) -> list[UUID]:
    """Lock and return the given memories that still have the flag; another worker may have maintained the others.

    The mind is locked first, as by all writers of memories. Two statements.
    """
    lock_minds([agent_id])
    waiting = Upkeep.objects.filter(agent_id=agent_id, memory_id__in=list(ids), **{flag.value: True})
    return list(waiting.order_by("memory_id").select_for_update().values_list("memory_id", flat=True))


def clear_flag(*, flag: MaintenanceFlag, ids: Sequence[UUID]) -> int:
    """Clear a maintenance flag of these memories; return their number. One statement; none without memories."""
    return int(Upkeep.objects.filter(memory_id__in=list(ids)).update(**{flag.value: False}))


def count_left_out(agent_id: UUID, *, flag: MaintenanceFlag, ids: Collection[UUID]) -> dict[UUID, int]:
    """Count a reply that left out these memories; return the new counts of the memories that still have the flag.

    Locks the mind in the open transaction. Three statements; none without memories.
    """
    if not ids:
        return {}
    lock_minds([agent_id])
    waiting = Upkeep.objects.filter(agent_id=agent_id, memory_id__in=list(ids), **{flag.value: True})
    waiting.update(**{_TRIES_COLUMNS[flag]: F(_TRIES_COLUMNS[flag]) + 1})
    return dict(waiting.values_list("memory_id", _TRIES_COLUMNS[flag]))


def store_concepts(agent_id: UUID, *, concepts: Mapping[UUID, Iterable[tuple[str, float]]]) -> Sequence[UUID]:
    """Link memories to extracted concepts in the open transaction; return the memories that still had the flag.

    `concepts` maps memory ids to (name, strength from 0 to 1); the flag of memories without concepts is cleared too.
    """
    claimed = claim_still_waiting(agent_id, flag=MaintenanceFlag.EXTRACT, ids=list(concepts))
    link_memories(agent_id=agent_id, links={memory_id: concepts[memory_id] for memory_id in claimed})
    clear_flag(flag=MaintenanceFlag.EXTRACT, ids=claimed)
    return claimed


def extract_left_out(agent_id: UUID, *, memory_ids: Collection[UUID]) -> int:
    """Extract concepts by rule from memories that a model repeatedly left out; return their number. In the open transaction."""
    memories = Memory.objects.filter(agent_id=agent_id, id__in=list(memory_ids))
    texts = memories.values_list("id", Left("content", READ_CHARACTERS))
    concepts = {memory_id: concepts_in(text) for memory_id, text in texts}
    return len(store_concepts(agent_id, concepts=concepts)) if concepts else 0


def store_appraisals(agent_id: UUID, *, scores: Mapping[UUID, float]) -> int:
    """Combine the importance of memories with the model's scores, 0 to 1; return the number of memories that still had the flag.

    In the open transaction. The new importance is the mean of the present one and the score; an importance of 1 does not change.
    """
    claimed = claim_still_waiting(agent_id, flag=MaintenanceFlag.APPRAISE, ids=list(scores))
    memories = Memory.objects.filter(agent_id=agent_id, id__in=claimed).only("tenant_id", "importance")
    changed = []
    for memory in memories.order_by("id").select_for_update():
        importance = combine_importances(memory.importance, scores[memory.id])
        if importance != memory.importance:
            memory.importance = importance
            changed.append(memory)
    # One update per batch, and one of the few writes to a memory's row after its creation.
    Memory.objects.bulk_update(changed, ["importance"])
    return clear_flag(flag=MaintenanceFlag.APPRAISE, ids=claimed)
