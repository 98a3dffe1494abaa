"""Write the drafts of several agents of a tenant: new memories, and changes of existing ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Pin
from apps.memories.services.embedding.embedding import embedder_for
from apps.memories.services.embedding.literals import fit_terms, sparsevec_text
from apps.memories.services.graph.neighborhoods import mark_around_all, mark_stale
from apps.memories.services.retention.archive import (
    count_terms_of_memories,
    flag_for_reindexing,
    reinforce,
    set_flags,
)
from apps.memories.services.store import queries
from apps.memories.services.store.drafts import Insertion, MindDraft
from apps.memories.services.store.reinforcement import PlacedMemory
from apps.memories.services.store.segmentation import Episodes, segment_memories
from apps.memories.services.store.term_counts import term_count_rows
from apps.signals.services.emission import emit
from apps.tenants.encoding import to_json
from apps.tenants.postgresql.arrays import Reals
from apps.tenants.statements import change
from arbor.ids import uuid7
from arbor.memory.detail_text import indexed_terms
from arbor.memory.duplicates import MAX_WORDINGS
from arbor.memory.relations import GraphNodeKind, Relation
from arbor.memory.values import Retention
from arbor.quotations import counted
from arbor.signals import Signal, SignalName, memory_data, signal

#: The number of memories stored at once from which an agent's quotas are checked soon. Fewer, such as a heartbeat's, wait for
#: the daily check: a day of heartbeats stores a hundredth of the quota.
_MIN_GROWTH = 20

_ACTOR = "system:memories"


def write_drafts(drafts: Sequence[MindDraft]) -> None:
    """Write all memories that were placed in the drafts of minds, which the caller has locked.

    For any number of agents: three statements for new memories, one of them for their episodes, one for signals; up to nine for memories that
    were remembered again, and one for each audit record of an agent; two for evolutions. None without changes.
    """
    touched = [draft for draft in drafts if draft.touched]
    if new := [draft for draft in touched if draft.steps]:
        _insert(new)
        emit(*map(_stored_signal, new))
    _write_changes(touched)
    _write_evolved(touched)
    for draft in touched:
        draft.mark_written()


def _stored_signal(draft: MindDraft) -> Signal:
    stored = [insertion.placed.id for step in draft.steps for insertion in step]
    return signal(SignalName.INDEXED, draft.agent_id, **memory_data(stored))


def _insert(drafts: Sequence[MindDraft]) -> None:
    episodes = segment_memories({draft.agent_id: draft.steps for draft in drafts})
    rows: list[dict[str, Any]] = []
    vectors: list[Any] = []
    terms_of_agents: defaultdict[UUID, list[Mapping[int, float]]] = defaultdict(list)
    first = 1
    for draft in drafts:
        made_by = None
        for insertion in (insertion for step in draft.steps for insertion in step):
            terms = _terms(draft, insertion)
            terms_of_agents[draft.agent_id].append(terms)
            row = _row(draft.agent_id, insertion, terms, episodes)
            if insertion.vector is not None:
                made_by = made_by or embedder_for(draft.model).model
                last = first + draft.model.dimension - 1
                row.update(first=first, last=last, made_by=made_by)
                vectors.append(insertion.vector)
                first = last + 1
            rows.append(row)
    change(
        queries.INSERT_MEMORIES,
        rows=to_json(rows),
        episodes=to_json(episodes.rows),
        minds=to_json([_mind(draft) for draft in drafts if not draft.exists]),
        numbers=Reals(np.concatenate(vectors)) if vectors else None,
        unweighed=_ids_to_appraise(drafts),
        **term_count_rows(terms_of_agents, sign=1),
        **_growth({agent_id: len(terms) for agent_id, terms in terms_of_agents.items()}),
    )


def _mind(draft: MindDraft) -> dict[str, Any]:
    return {"agent": draft.agent_id, "model": draft.model.name, "dimension": draft.model.dimension}


def _terms(draft: MindDraft, insertion: Insertion) -> dict[int, float]:
    memory = insertion.memory
    terms = indexed_terms(memory.content, speaker=memory.role, detail=insertion.placed.detail)
    return fit_terms(terms, session=memory.session, dimension=draft.model.dimension)


def _ids_to_appraise(drafts: Sequence[MindDraft]) -> list[UUID]:
    """Return the ids of new memories without an importance, which a model appraises if one is configured."""
    if not (settings.ARBOR_MAINTENANCE_MODEL and settings.ARBOR_APPRAISE_MEMORIES):
        return []
    return [
        insertion.placed.id
        for draft in drafts
        for step in draft.steps
        for insertion in step
        if insertion.memory.importance is None
    ]


def _row(
    agent_id: UUID, insertion: Insertion, terms: Mapping[int, float], episodes: Episodes
) -> dict[str, Any]:
    memory = insertion.memory
    episode, sequence = episodes.places.get(insertion.placed.id, (None, 0))
    return {
        **_changeable(insertion.placed),
        "agent": agent_id,
        "type": memory.type,
        "content": memory.content,
        "content_hash": insertion.digest.hex(),
        "decay_rate": memory.decay_rate,
        "session": memory.session,
        "position": insertion.position,
        "role": memory.role,
        "source": memory.source,
        "occurred_at": memory.occurred_at,
        "made_by": "",
        "lexical": sparsevec_text(terms),
        "episode": episode,
        "sequence": sequence,
    }


def _changeable(placed: PlacedMemory) -> dict[str, Any]:
    """Return the columns that change when a memory is remembered again, as `queries.CHANGE_MEMORIES` reads them."""
    return {
        "id": placed.id,
        "expires_at": placed.expires_at,
        "retention": placed.retention,
        "importance": placed.importance,
        "trust": placed.trust,
        "emotional_valence": placed.emotional_valence,
        "detail": dict(placed.detail),
    }


def _write_changes(drafts: Sequence[MindDraft]) -> None:
    """Write the changes of memories that were remembered again. New memories have been inserted before."""
    touched = sorted(
        (memory for draft in drafts for memory in draft.touched.values()), key=lambda memory: memory.id
    )
    if changed := [_changeable(placed) for placed in touched if placed.changed and placed.written]:
        change(queries.CHANGE_MEMORIES, rows=to_json(changed), ids=[row["id"] for row in changed])
    if permanent := [placed.id for placed in touched if placed.made_permanent and placed.written]:
        Pin.objects.filter(memory_id__in=permanent).update(retention=Retention.PERMANENT, expires_at=None)
    if words_changed := [placed.id for placed in touched if placed.words_changed and placed.written]:
        flag_for_reindexing(words_changed)
    if again := {placed.id: placed.repetitions for placed in touched if placed.repetitions}:
        reinforce(again)
    unarchived: dict[UUID, list[UUID]] = {}
    for draft in drafts:
        placed_memories = draft.touched.values()
        if left_out := {
            str(placed.id): placed.wordings_left_out for placed in placed_memories if placed.wordings_left_out
        }:
            _record_wordings_left_out(draft.agent_id, left_out)
        if restored := [placed.id for placed in placed_memories if placed.unarchived]:
            unarchived[draft.agent_id] = restored
            _record_unarchived(draft.agent_id, restored)
    if unarchived:
        _restore_to_recall(unarchived)
        emit(
            *(
                signal(SignalName.KNOWLEDGE_RESTORED, agent_id, **memory_data(ids), actor=_ACTOR)
                for agent_id, ids in unarchived.items()
            )
        )


def _record_wordings_left_out(agent_id: UUID, left_out: dict[str, int]) -> None:
    record(
        action=AuditAction.TRUNCATED,
        actor=_ACTOR,
        agent_id=agent_id,
        message=f"counted {sum(left_out.values())} further wordings of memories, beyond {MAX_WORDINGS}",
        detail={"memories": left_out},
    )


def _record_unarchived(agent_id: UUID, unarchived: Sequence[UUID]) -> None:
    memories = counted(len(unarchived), "archived memory", "archived memories")
    record(
        action=AuditAction.MEMORIES_RESTORED,
        actor=_ACTOR,
        agent_id=agent_id,
        message=f"restored {memories}: the same was remembered again",
        detail={"memory_ids": [str(memory_id) for memory_id in unarchived]},
    )


def _restore_to_recall(unarchived: Mapping[UUID, Sequence[UUID]]) -> None:
    """Set the maintenance flags and count the terms of restored memories, and mark neighborhoods stale."""
    ids = [memory_id for restored in unarchived.values() for memory_id in restored]
    set_flags(ids)
    # The neighborhoods of related memories must include the restored ones again.
    mark_stale(ids)
    count_terms_of_memories(ids, sign=1)


def _write_evolved(drafts: Sequence[MindDraft]) -> None:
    """Relate each old memory to the later one that it evolved into. Two statements; none without evolutions."""
    rows = [
        {
            "id": uuid7(),
            "agent": draft.agent_id,
            "old": evolution.old_id,
            "new": evolution.new_id,
            "origin": evolution.origin,
        }
        for draft in drafts
        for evolution in draft.evolved
    ]
    if not rows:
        return
    change(
        queries.INSERT_EVOLUTIONS,
        memory=GraphNodeKind.MEMORY.value,
        relation=Relation.EVOLVED_INTO.value,
        rows=to_json(rows),
    )
    ends = {
        draft.agent_id: {end for evolution in draft.evolved for end in (evolution.old_id, evolution.new_id)}
        for draft in drafts
    }
    mark_around_all(ends)


def _growth(stored: Mapping[UUID, int]) -> dict[str, Any]:
    """Return the values of MARK_GROWN for the numbers of new memories by agent."""
    grown = sorted((agent_id, count) for agent_id, count in stored.items() if count >= _MIN_GROWTH)
    return {
        "grown_agents": [agent_id for agent_id, _ in grown],
        "grown": [count for _, count in grown],
        "quota": settings.ARBOR_MEMORY_QUOTA,
    }
