"""Find closed episodes without a summary, load their memories, and store their summaries."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Now

from apps.memories.models import Episode
from apps.memories.services.embedding.embedding import EmbeddedTexts, embedder_for
from apps.memories.services.embedding.literals import halfvec_texts, sparsevec_text
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.jobs import queries
from apps.memories.services.store.term_counts import lock_minds
from apps.signals.services.emission import emit
from apps.tenants.statements import change, fetch
from arbor.clock import format_time
from arbor.memory.maintenance.calls import TEXT_LENGTH, Excerpt
from arbor.memory.text.lexical import document_vector
from arbor.signals import SignalName, signal

#: The time between the end of an episode and its summary (seed 004, 6.4).
SUMMARY_DELAY = timedelta(minutes=5)
#: The number of failed tries after which an episode stays without a summary.
MAX_FAILURES = 4
#: The most memories read for a summary; of a longer episode, an even sample.
_MAX_READ = 1_000


@dataclass(frozen=True, kw_only=True)
class UnsummarizedEpisode:
    """An episode without a summary, and its active memories in order."""

    episode_id: UUID
    #: The number of memories when they were read: if there are more later, the summary is outdated.
    size: int
    excerpts: Sequence[Excerpt]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A summary to store, and its author: a model or the name of the rule."""

    episode_id: UUID
    #: The episode's size when it was read.
    size: int
    text: str
    by: str


def agents_with_unsummarized() -> str:
    """Return SQL for `run_job`: the agents of tenant `t.id` with an episode to summarize."""
    delay = f"interval '{SUMMARY_DELAY.total_seconds()} seconds'"
    return queries.AGENTS_TO_SUMMARIZE.format(tries=MAX_FAILURES, delay=delay)


def unsummarized_episodes(
    agent_id: UUID, *, limit: int, without: Collection[UUID] = (), max_size: int | None = None
) -> list[UnsummarizedEpisode]:
    """Return up to `limit` episodes to summarize, in the order in which they were closed.

    With `max_size`, only episodes of at most this number of memories. The episodes are locked until the transaction ends; those locked
    by others are skipped. Two statements.
    """
    # A clock that ran ahead may have written an end in the future: such an episode does not wait.
    settled = Q(ended_at__lt=Now() - SUMMARY_DELAY) | Q(ended_at__gt=Now() + SUMMARY_DELAY)
    episodes = Episode.objects.filter(
        settled, agent_id=agent_id, summarized_at=None, failures__lt=MAX_FAILURES
    ).exclude(id__in=list(without))
    if max_size is not None:
        episodes = episodes.filter(size__lte=max_size)
    locked = episodes.order_by("ended_at", "id").select_for_update(skip_locked=True)
    sizes: dict[UUID, int] = dict(locked.values_list("id", "size")[:limit])
    # One character more than a prompt shows, to detect longer texts.
    members: dict[UUID, list[Excerpt]] = {episode_id: [] for episode_id in sizes}
    rows = (
        fetch(queries.EPISODE_TEXTS, ids=list(sizes), longest=TEXT_LENGTH + 1, read=_MAX_READ)
        if sizes
        else []
    )
    for episode_id, text, role, type_, at in rows:
        members[episode_id].append(Excerpt(text=text, role=role, type=type_, at=format_time(at)))
    return [
        UnsummarizedEpisode(episode_id=episode_id, size=size, excerpts=members[episode_id])
        for episode_id, size in sizes.items()
    ]


def store_summaries(agent_id: UUID, *, summaries: Sequence[Summary], embedded: EmbeddedTexts) -> int:
    """Store summaries in the open transaction; return the number stored.

    Episodes that got a summary or more memories in the meantime, or are open again, are skipped. Vectors of a model that
    the agent no longer has are dropped, and the backlog embeds the summaries. Three statements, and one for the signal
    if a summary is stored.
    """
    lock_minds([agent_id])
    vectors = embedded.vectors if model_of(agent_id) == embedded.model else None
    literals = halfvec_texts(vectors) if vectors is not None else [None] * len(summaries)
    made_by = embedder_for(embedded.model).model if vectors is not None else ""
    rows = [
        {
            "id": str(summary.episode_id),
            "size": summary.size,
            "summary": summary.text,
            "by": summary.by,
            "lexical": sparsevec_text(document_vector(summary.text)),
            # An empty summary has no vector.
            "embedding": literal if summary.text else None,
            "embedding_model": made_by if summary.text else "",
        }
        for summary, literal in zip(summaries, literals, strict=True)
    ]
    stored = change(queries.STORE_SUMMARIES, agent=agent_id, rows=json.dumps(rows, ensure_ascii=False))
    if stored:
        emit(signal(SignalName.CONTEXT_SUMMARIZED, agent_id, count=stored))
    return stored


def record_failed_summary(*, agent_id: UUID, episode_id: UUID, reason: str) -> None:
    """Record on the episode that its summary failed, with the reason. One statement."""
    episodes = Episode.objects.filter(agent_id=agent_id, id=episode_id, summarized_at=None)
    episodes.update(failures=F("failures") + 1, failure=reason)


def reset_failures(episode_ids: Sequence[str]) -> int:
    """Reset the failures of episodes without a summary, so that they are summarized again; return their number. At most one statement."""
    return int(Episode.objects.filter(id__in=list(episode_ids), summarized_at=None).update(failures=0))
