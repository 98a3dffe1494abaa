"""Index the words of memories' details again: of details that changed, and of memories that an older version of Arbor stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.memories.models import Memory, NextEmbedding, Upkeep
from apps.memories.services.embedding.literals import fit_terms, sparsevec_text
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.jobs import queries
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.store.term_counts import count_terms, lock_minds, terms_of
from apps.tenants.encoding import to_json
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change
from arbor.memory.detail_text import INDEXED_FIELDS, indexed_terms
from arbor.memory.values import MemoryStatus

#: The most memories of one step. Most memories of an older version have no detail, and only lose their flag.
_BATCH = 1_000
_FLAG = "unindexed"
#: The columns of memories that `index_memories` reads.
INDEXED_COLUMNS = ("id", "content", "role", "session", "detail", "lexical", "status")


def reindex_words() -> JobRunResult:
    """Index the details of flagged memories, agent by agent."""
    return run_job("reindex_words", waiting=queries.AGENTS_WITH_FLAG.replace("{flag}", _FLAG), step=_reindex)


def _reindex(tenant_id: UUID, agent_id: UUID) -> int:
    """Index a batch of an agent's flagged memories, archived ones too; return the number of memories. Up to nine statements."""
    with tenant_transaction(tenant_id):
        lock_minds([agent_id])
        flagged = Upkeep.objects.filter(agent_id=agent_id, unindexed=True).order_by("memory_id")
        ids = list(flagged.select_for_update(no_key=True).values_list("memory_id", flat=True)[:_BATCH])
        memories = Memory.objects.filter(id__in=ids, detail__has_any_keys=list(INDEXED_FIELDS))
        index_memories(agent_id, memories=list(memories.values(*INDEXED_COLUMNS)))
        return int(Upkeep.objects.filter(memory_id__in=ids).update(unindexed=False))


def index_memories(agent_id: UUID, *, memories: Sequence[Mapping[str, Any]]) -> None:
    """Write the lexical vectors of memories, as many terms as fit beside vectors of the agent's model, and count the terms.

    In the open transaction, with the mind locked. Up to five statements; none without memories.
    """
    if not memories:
        return
    dimension = model_of(agent_id).dimension
    vectors = {
        memory["id"]: fit_terms(
            indexed_terms(memory["content"], speaker=memory["role"], detail=memory["detail"]),
            session=memory["session"],
            dimension=dimension,
        )
        for memory in memories
    }
    active = [memory for memory in memories if memory["status"] == MemoryStatus.ACTIVE]
    count_terms(agent_id, terms=[terms_of(memory["lexical"]) for memory in active], sign=-1)
    count_terms(agent_id, terms=[vectors[memory["id"]] for memory in active], sign=1)
    rows = [{"id": memory_id, "lexical": sparsevec_text(terms)} for memory_id, terms in vectors.items()]
    change(queries.WRITE_LEXICAL, rows=to_json(rows))
    # A move to another embedder that is under way has prepared the terms from before; it prepares these memories again.
    NextEmbedding.objects.filter(memory_id__in=list(vectors)).delete()
