"""Close, recall and read episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from apps.memories.models import Episode, Memory
from apps.memories.services.embedding.literals import sparsevec_text
from apps.memories.services.embedding.minds import query_vector
from apps.memories.services.jobs import queries
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.recall.recaller import Meaning, embed_meaning
from apps.memories.services.store.term_counts import lock_minds, read_term_statistics
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import Invalid, NotFound
from arbor.memory.episodes import EpisodeCandidate, EpisodeScoreComponents, rank_episodes
from arbor.memory.recall.recall_request import ReadQuery, check_query_text, meaning_text, read_query
from arbor.memory.text.lexical import counted_indices, query_terms
from arbor.memory.values import MemoryStatus

#: The most episodes that a recall returns, and the most memories of an episode that are read at once.
MAX_LIMIT = 100
MAX_MEMORIES = 1_000
#: The number of latest episodes without a summary that are scored by their memories.
_SCORED_BY_MEMORIES = 100


@dataclass(frozen=True, kw_only=True)
class RecalledEpisode:
    """A recalled episode, with the components of its score."""

    id: UUID
    session: str
    started_at: datetime
    last_at: datetime
    #: None while the episode is open.
    ended_at: datetime | None
    size: int
    #: The summary and its author, a model or the name of the rule; both are empty until the episode is summarized.
    summary: str
    summarized_by: str
    components: EpisodeScoreComponents

    @property
    def score(self) -> float:
        """The sum of the components."""
        return self.components.total


@dataclass(frozen=True, kw_only=True)
class EpisodeMember:
    """A memory with its place in an episode."""

    id: UUID
    sequence: int
    content: str
    role: str
    occurred_at: datetime


def close_episodes() -> JobRunResult:
    """Close the open episodes whose last memory is older than `ARBOR_EPISODE_GAP_MINUTES`, agent by agent."""
    gap = f"interval '{settings.ARBOR_EPISODE_GAP.total_seconds()} seconds'"
    return run_job("episodes", waiting=queries.AGENTS_TO_CLOSE_EPISODES.format(gap=gap), step=_close)


def _close(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        # Lock the mind to wait for transactions that add a memory to one of these episodes.
        lock_minds([agent_id])
        episodes = Episode.objects.filter(agent_id=agent_id, ended_at=None)
        return int(episodes.filter(last_at__lt=Now() - settings.ARBOR_EPISODE_GAP).update(ended_at=Now()))


def recall_episodes(*, tenant_id: UUID, agent_id: UUID, text: str, limit: int = 5) -> list[RecalledEpisode]:
    """Return the episodes of an agent that match a text, best first, each with the components of its score.

    An episode is scored by its summary; the latest ones without a summary, by their best memories. If the embedder fails, only words count.
    Changes nothing. Three statements. Raises Invalid for an empty or too long text, or a limit outside 1 to 100.
    """
    check_query_text(text)
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"a recall returns 1 to {MAX_LIMIT} episodes, asked for {limit}")
    now = datetime.now(UTC)
    with tenant_transaction(tenant_id):
        meaning, reading = _read(agent_id, text, now)
    vector = embed_meaning(tenant_id, agent_id, meaning)
    with tenant_transaction(tenant_id):
        ranked = rank_episodes(
            _candidates(agent_id, reading, vector, meaning.model, now),
            span=reading.span,
            now=now,
            limit=limit,
        )
        return _with_details(ranked)


def episode_memories(*, episode_id: UUID, after: int = 0, limit: int = 200) -> list[EpisodeMember]:
    """Return the active memories of an episode after the place `after`, in order, in the open transaction.

    Raises NotFound for an unknown episode, and Invalid for a limit outside 1 to 1,000.
    """
    if not 1 <= limit <= MAX_MEMORIES:
        raise Invalid(f"a read of an episode returns 1 to {MAX_MEMORIES:,} memories, asked for {limit}")
    memories = Memory.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=Now()),
        episode_id=episode_id,
        status=MemoryStatus.ACTIVE,
        sequence__gt=after,
    ).order_by("sequence", "id")
    rows = list(memories.values("id", "sequence", "content", "role", "occurred_at")[:limit])
    if not rows and not Episode.objects.filter(id=episode_id).exists():
        raise NotFound(f"there is no episode {episode_id} in this tenant")
    return [EpisodeMember(**row) for row in rows]


def _read(agent_id: UUID, text: str, now: datetime) -> tuple[Meaning, ReadQuery]:
    """Return the meaning of a query to embed, and the parsed query.

    Summaries are scored by the word frequencies of all memories of the agent.
    """
    statistics = read_term_statistics({agent_id: counted_indices(query_terms(text))})[agent_id]
    meaning = Meaning(text=meaning_text(text, statistics.df), model=statistics.model)
    return meaning, read_query(text, df=statistics.df, documents=statistics.documents, now=now)


def _candidates(
    agent_id: UUID,
    reading: ReadQuery,
    vector: Sequence[float] | None,
    model: EmbeddingModel | None,
    now: datetime,
) -> list[EpisodeCandidate]:
    values: dict[str, Any] = query_vector(vector, model)
    rows = fetch(
        queries.SCAN_EPISODES,
        agent=agent_id,
        lexical=sparsevec_text(reading.lexical),
        by_memories=_SCORED_BY_MEMORIES,
        now=now,
        **values,
    )
    return [EpisodeCandidate(*row) for row in rows]


def _with_details(ranked: Sequence[tuple[UUID, EpisodeScoreComponents]]) -> list[RecalledEpisode]:
    names = ("id", "session", "started_at", "last_at", "ended_at", "size", "summary", "summarized_by")
    episodes = Episode.objects.filter(id__in=[episode_id for episode_id, _ in ranked]).values(*names)
    by_id = {episode["id"]: episode for episode in episodes}
    # An episode that is deleted between the two statements is left out.
    return [
        RecalledEpisode(**by_id[episode_id], components=components)
        for episode_id, components in ranked
        if episode_id in by_id
    ]
