"""Index the words of memories' details again: of details that changed, and of memories that an older version of Arbor stored."""

from __future__ import annotations

from uuid import UUID

from apps.memories.models import Memory, Upkeep
from apps.memories.services.jobs import queries
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.store.term_counts import lock_minds
from apps.memories.services.store.word_index import INDEXED_COLUMNS, index_memories
from apps.tenants.scope import tenant_transaction
from arbor.memory.detail_text import INDEXED_FIELDS

#: The most memories of one step. Most memories of an older version have no detail, and only lose their flag.
_BATCH = 1_000
_FLAG = "unindexed"


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
