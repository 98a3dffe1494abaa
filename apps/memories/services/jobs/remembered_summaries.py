"""Store the summaries of episodes as memories, so that every recall finds them among the other memories."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from apps.memories.models import Episode, Memory
from apps.memories.services.jobs import queries
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.retention.archive import archive
from apps.memories.services.store.remember import store
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.memory.episodes import session_of_summary
from arbor.memory.values import MemoryStatus, NewMemory, Retention

#: The most summaries of one step.
_STEP = 100
#: The fewest memories of an episode whose summary is stored: that of a shorter episode only repeats its memories (`SHORT_EPISODE`).
_MIN_SIZE = 3
#: The default importance of a memory that nobody has appraised.
SUMMARY_IMPORTANCE = 0.5
_ACTOR = "system:maintenance"


def remember_summaries() -> JobRunResult:
    """Store the summaries that are no memories yet, agent by agent; the embedding backlog adds their vectors."""
    return run_job("remembered", waiting=queries.AGENTS_WITH_UNREMEMBERED, step=_remember)


def _remember(tenant_id: UUID, agent_id: UUID) -> int:
    """Store a step of an agent's summaries; return the number of episodes, short ones included, so that further steps follow."""
    with tenant_transaction(tenant_id):
        lock_minds([agent_id])
        rows = fetch(queries.UNREMEMBERED_SUMMARIES, agent=agent_id, limit=_STEP)
        if not rows:
            return 0
        wanted = {
            episode_id: NewMemory(
                content=summary,
                occurred_at=started_at,
                importance=SUMMARY_IMPORTANCE,
                trust=trust,
                emotional_valence=valence,
                session=session_of_summary(episode_id),
                source=session_of_summary(episode_id),
                retention=Retention.LASTING,
            )
            for episode_id, summary, started_at, size, trust, valence in rows
            if summary.strip() and size >= _MIN_SIZE
        }
        _archive_earlier(wanted)
        if wanted:
            store(agent_id=agent_id, memories=[*wanted.values()], vectors=None)
        Episode.objects.filter(id__in=[row[0] for row in rows]).update(remembered=True)
        return len(rows)


def _archive_earlier(wanted: Mapping[UUID, NewMemory]) -> None:
    """Archive earlier summaries of the episodes, from before they grew; pinned ones are archived by people only."""
    earlier = Memory.objects.filter(
        episode_id__in=list(wanted), sequence=0, status=MemoryStatus.ACTIVE, pin__isnull=True
    )
    outdated = [
        memory_id
        for memory_id, episode_id, content in earlier.values_list("id", "episode_id", "content")
        if content != wanted[episode_id].content
    ]
    if outdated:
        archive(memory_ids=outdated, reason="its episode was summarized anew", actor=_ACTOR)
