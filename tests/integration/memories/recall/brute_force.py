"""Recall by brute force: read every memory, score by numpy, and rank by the same ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings

from apps.agents.models import Agent
from apps.memories.models import Activation, Memory, MemoryAccess, Upkeep
from apps.tenants.scope import tenant_transaction
from arbor.memory.activation import FLOOR, level_after
from arbor.memory.neighborhood import HIGHEST_WEIGHT
from arbor.memory.recall.candidates import Candidate, Candidates, Links
from arbor.memory.recall.fusion import (
    MAX_ASSOCIATED_MEMORIES,
    MAX_ASSOCIATION_SOURCES,
    REACH,
    SEEDS,
    SPAN_SEEDS,
    Background,
    RankedCandidate,
    ScoreInputs,
    deviations,
    rank,
)
from arbor.memory.recall.recall_request import (
    EVERYTHING,
    ReadQuery,
    RecallFilter,
    SessionLimit,
    read_query,
)
from arbor.memory.recall.weights import DEFAULT_WEIGHTS
from arbor.memory.values import MemoryStatus

type Neighborhoods = Mapping[UUID, Mapping[str, float]]

#: The weight of a deviation in meaning beside words, for candidates of the time span of a query.
BESIDE_WORDS = 0.05


@dataclass(frozen=True, kw_only=True)
class StoredMind:
    """Everything of an agent that a recall reads, as the tables have it."""

    memories: Sequence[Memory]
    accesses: Mapping[UUID, MemoryAccess]
    activations: Mapping[UUID, Activation]
    neighborhoods: Neighborhoods


def read_mind(agent: Agent) -> StoredMind:
    """Read an agent's mind once, for any number of slow recalls."""
    with tenant_transaction(agent.tenant_id):
        upkeep = Upkeep.objects.filter(agent_id=agent.id, neighbors__isnull=False)
        return StoredMind(
            memories=list(
                Memory.objects.filter(agent_id=agent.id, status=MemoryStatus.ACTIVE).order_by("id")
            ),
            accesses={
                access.memory_id: access for access in MemoryAccess.objects.filter(memory__agent_id=agent.id)
            },
            activations={
                activation.memory_id: activation
                for activation in Activation.objects.filter(agent_id=agent.id)
            },
            neighborhoods={row.memory_id: row.neighbors or {} for row in upkeep},
        )


def recall_slowly(
    stored: StoredMind,
    text: str,
    vector: Sequence[float] | None,
    *,
    limit: int,
    now: datetime,
    without_session: str = "",
    only: RecallFilter = EVERYTHING,
    mood: float | None = None,
    session_limit: SessionLimit | None = None,
) -> list[RankedCandidate]:
    """Return the expected recall, with the score components of each."""
    reading = _read(stored.memories, text, now)
    rows = [
        row
        for row in stored.memories
        if (row.expires_at is None or row.expires_at > now)
        and not (without_session and row.session == without_session)
        and _passes(row, only)
    ]
    candidates = [
        _candidate(row, stored.accesses.get(row.id), stored.activations.get(row.id), now, reading, vector)
        for row in rows
    ]
    near = [candidate.similarity for candidate in candidates if candidate.similarity is not None]
    background = Background(mean=float(np.mean(near or [0])), deviation=float(np.std(near or [0])))
    chosen, associations = _choose(
        candidates, reading, background, limit, stored.neighborhoods, session_limit
    )
    places = {memory.id: place for place, memory in enumerate(chosen)}
    links = [
        (places[source], places[target], share)
        for (source, target), share in associations.items()
        if target in places
    ]
    ranking = rank(
        ScoreInputs(
            candidates=Candidates.of(chosen),
            reading=reading,
            background=background,
            links=Links.of(links),
            mood=mood,
        ),
        now=now,
        limit=len(chosen),
    )
    return _within(ranking, chosen, session_limit)[:limit]


def _within(
    ranking: Sequence[RankedCandidate], candidates: Sequence[Candidate], limit: SessionLimit | None
) -> list[RankedCandidate]:
    """Return a ranking without the candidates of the session beyond its limit."""
    places = [ranked for ranked in ranking if limit and candidates[ranked.index].session == limit.session]
    left_out = {ranked.id for ranked in places[limit.most :]} if limit else set()
    return [ranked for ranked in ranking if ranked.id not in left_out]


def _passes(row: Memory, only: RecallFilter) -> bool:
    return (
        (not only.types or row.type in only.types)
        and (only.since is None or row.occurred_at >= only.since)
        and (only.until is None or row.occurred_at < only.until)
        and (not only.session or row.session == only.session)
        and not (
            only.without_session
            and row.session == only.without_session
            and (only.without_since is None or row.occurred_at >= only.without_since)
        )
        and row.importance >= only.min_importance
        and row.trust >= only.min_trust
        and (only.episode is None or row.episode_id == only.episode)
    )


def _read(rows: Sequence[Memory], text: str, now: datetime) -> ReadQuery:
    frequencies: dict[int, int] = {}
    for row in rows:
        for place in row.lexical.indices():
            frequencies[place + 1] = frequencies.get(place + 1, 0) + 1
    return read_query(text, df=frequencies, documents=len(rows), now=now)


def _candidate(
    row: Memory,
    access: MemoryAccess | None,
    activation: Activation | None,
    now: datetime,
    reading: ReadQuery,
    vector: Sequence[float] | None,
) -> Candidate:
    stored = dict(zip((place + 1 for place in row.lexical.indices()), row.lexical.values(), strict=True))
    similarity = None
    if vector is not None and row.embedding is not None:
        halves = np.asarray(vector, dtype=np.float16), np.asarray(row.embedding, dtype=np.float16)
        similarity = float(np.dot(*(half.astype(np.float64) for half in halves)))
    parts: dict[str, Any] = {
        name: getattr(row, name)
        for name in ("id", "session", "position", "role", "occurred_at", "importance", "decay_rate", "trust")
    }
    level = (
        level_after(activation.level, now - activation.at, settings.ARBOR_ACTIVATION_HALF_LIFE)
        if activation
        else 0.0
    )
    return Candidate(
        words=sum(weight * stored.get(term, 0.0) for term, weight in reading.lexical.items()),
        similarity=similarity,
        asks="?" in row.content,
        last_access_at=access.last_at if access else None,
        uses=access.count + access.reinforced if access else 0,
        episode=row.episode_id,
        level=level if level >= FLOOR else 0.0,
        valence=row.emotional_valence,
        **parts,
    )


def _choose(
    all_candidates: list[Candidate],
    reading: ReadQuery,
    background: Background,
    limit: int,
    neighborhoods: Neighborhoods,
    session_limit: SessionLimit | None,
) -> tuple[list[Candidate], dict[tuple[UUID, UUID], float]]:
    """Return the seeds by meaning, by words and by the time span of the query, with the turns beside them, and the
    neighbors of the best seeds with their association scores. Where these are fewer than `limit`, the latest memories are
    seeds too. With a session limit, seeds are chosen once more among the memories of other sessions.
    """
    count = max(SEEDS, limit)
    pools = [all_candidates]
    if session_limit:
        pools.append([memory for memory in all_candidates if memory.session != session_limit.session])

    def fit(candidate: Candidate) -> float:
        if candidate.similarity is None or not background.deviation:
            return candidate.words
        return (
            candidate.words + BESIDE_WORDS * (candidate.similarity - background.mean) / background.deviation
        )

    around = reading.span.around() if reading.span else None
    chosen: list[Candidate] = []
    latest: list[Candidate] = []
    for pool in pools:
        near = [memory for memory in pool if memory.similarity is not None]
        chosen += sorted(near, key=lambda memory: (-(memory.similarity or 0.0), memory.id))[:count]
        worded = [memory for memory in pool if memory.words > 0]
        chosen += sorted(worded, key=lambda memory: (-memory.words, memory.id))[:count]
        if around is not None:
            timely = [memory for memory in pool if around[0] <= memory.occurred_at <= around[1]]
            chosen += sorted(timely, key=lambda memory: (-fit(memory), memory.id))[:SPAN_SEEDS]
        latest += sorted(pool, key=lambda memory: (-memory.occurred_at.timestamp(), memory.id))[:limit]
    chosen, latest = _once(chosen), _once(chosen + latest)
    candidates, associations = _with_associated(chosen, all_candidates, background, neighborhoods)
    of_session = [
        memory for memory in candidates if session_limit and memory.session == session_limit.session
    ]
    beyond = max(0, len(of_session) - session_limit.most) if session_limit else 0
    if len(candidates) - beyond < limit:
        candidates, associations = _with_associated(latest, all_candidates, background, neighborhoods)
    return candidates, associations


def _once(candidates: list[Candidate]) -> list[Candidate]:
    return list({memory.id: memory for memory in candidates}.values())


def _with_associated(
    chosen: list[Candidate],
    all_candidates: list[Candidate],
    background: Background,
    neighborhoods: Neighborhoods,
) -> tuple[list[Candidate], dict[tuple[UUID, UUID], float]]:
    columns = Candidates.of(chosen)
    fits = DEFAULT_WEIGHTS.words * columns.words + DEFAULT_WEIGHTS.meaning * deviations(
        columns.similarity, background
    )
    fit = {memory.id: float(fits[place]) for place, memory in enumerate(chosen)}
    sources = sorted(
        (memory_id for memory_id in fit if fit[memory_id] > 0),
        key=lambda memory_id: (-fit[memory_id], memory_id),
    )[:MAX_ASSOCIATION_SOURCES]
    associations = {
        (source, UUID(other)): weight / HIGHEST_WEIGHT
        for source in sources
        for other, weight in neighborhoods.get(source, {}).items()
    }
    best_shares: dict[UUID, float] = {}
    for (source, other), share in associations.items():
        best_shares[other] = max(best_shares.get(other, 0.0), fit[source] * share)
    new = [memory for memory in all_candidates if memory.id in best_shares and memory.id not in fit]
    associated = {
        memory.id
        for memory in sorted(new, key=lambda memory: (-best_shares[memory.id], memory.id))[
            :MAX_ASSOCIATED_MEMORIES
        ]
    }
    beside = {memory.id for memory in _with_adjacent_turns(chosen, all_candidates)}
    return [memory for memory in all_candidates if memory.id in beside | associated], associations


def _with_adjacent_turns(chosen: list[Candidate], all_candidates: list[Candidate]) -> list[Candidate]:
    places = {(memory.session, memory.position) for memory in chosen if memory.session}
    ids = {memory.id for memory in chosen}
    return [
        memory
        for memory in all_candidates
        if memory.id in ids
        or any((memory.session, memory.position + step) in places for step in range(-REACH, REACH + 1))
    ]
