"""Recall: one scan of the agent's index finds candidates, one statement brings them with their neighbours, one ranker.

The scan reads `memories_memory_mind` alone and scores every memory exactly; nothing is approximate. The statement
computes the neighbours' scores from their rows, a few hundred at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from apps.memories.services.activation import note_recall
from apps.memories.services.embedding import embed_texts
from apps.memories.services.literals import sparsevec_text
from apps.memories.services.minds import QUERY_VECTOR, query_vector
from apps.memories.services.remember import ALL_MEMORIES
from apps.tenants.scope import current_tenant, tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed, Invalid
from arbor.memory.fusion import REACH, SEEDS, SPAN_SEEDS, Background, Candidate, rank
from arbor.memory.lexical import looked_up, query_terms
from arbor.memory.query import Reading, read_query
from arbor.memory.values import MemoryType, Recalled, ScoreTerms

log = structlog.get_logger(__name__)

#: A row of the statement below, its columns in that order.
type _Row = tuple[Any, ...]

#: The most one recall returns, and the longest query it reads.
MAX_LIMIT = 200
QUERY_LENGTH = 4_000
#: Within the time the query speaks of, words choose the candidates, and meaning decides between equals.
_MEANING_BESIDE_WORDS = 0.05
#: Turns fetched beside one; there are more than 2 · REACH only where several memories share a place.
_MOST_BESIDE = 20

_CANDIDATES = """
WITH scan AS MATERIALIZED (
    SELECT id, occurred_at, -(embedding <#> {query_vector}) AS similarity,
        -(lexical <#> %(lexical)s::sparsevec) AS words
    FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active'
        AND (expires_at IS NULL OR expires_at > %(now)s)
        AND (%(without)s::text IS NULL OR session <> %(without)s)
), background AS (
    SELECT coalesce(avg(similarity), 0) AS mean, coalesce(stddev_pop(similarity), 0) AS deviation FROM scan
), chosen AS (
    (SELECT id FROM scan WHERE similarity IS NOT NULL ORDER BY similarity DESC, id LIMIT %(kept)s)
    UNION (SELECT id FROM scan WHERE words > 0 ORDER BY words DESC, id LIMIT %(kept)s)
    UNION (
        SELECT id FROM scan, background WHERE occurred_at BETWEEN %(from)s AND %(to)s
        ORDER BY coalesce(words, 0)
            + %(beside)s * coalesce((similarity - mean) / nullif(deviation, 0), 0) DESC, id
        LIMIT %(kept_by_time)s
    )
), found AS (
    SELECT {columns}
    FROM chosen JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = chosen.id
), candidate AS (
    SELECT * FROM found
    UNION ALL
    SELECT beside.* FROM found CROSS JOIN LATERAL (
        SELECT {columns} FROM memories_memory m
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND session = found.session AND status = 'active'
            AND position BETWEEN found.position - %(reach)s AND found.position + %(reach)s
            AND position <> found.position AND (expires_at IS NULL OR expires_at > %(now)s)
        ORDER BY position LIMIT %(most_beside)s
    ) beside WHERE found.session <> ''
)
SELECT candidate.*, a.last_at, background.mean, background.deviation
FROM background, candidate
LEFT JOIN memories_memoryaccess a ON a.tenant_id = %(tenant)s AND a.memory_id = candidate.id
""".replace(
    "{columns}",
    "m.id, m.type, m.content, m.role, m.session, m.position, m.occurred_at, m.importance, m.decay_rate, m.trust,"
    " -(m.embedding <#> {query_vector}), coalesce(-(m.lexical <#> %(lexical)s::sparsevec), 0)",
).replace("{query_vector}", QUERY_VECTOR)

# One row, if the agent has a mind, is of no term: the model of its vectors.
_KNOWN = """
SELECT term, memories, NULL FROM memories_term
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND term = ANY(%(terms)s::int[])
UNION ALL
SELECT NULL, embedding_dimension, embedding_model FROM memories_mind
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
"""


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What an agent's mind is asked before a query can be read."""

    #: In how many of its memories each term of the query occurs, and how many memories there are.
    df: dict[int, int]
    documents: int
    #: The model of its vectors; none while it remembers nothing.
    model: EmbeddingModel | None


def recall(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    text: str,
    limit: int = 10,
    counts: bool = False,
    now: datetime | None = None,
) -> list[Recalled]:
    """Return what an agent remembers about a text, best first, each with the terms of its score.

    `counts` says that the agent itself recalls: its memories are marked as used. A person's look never does that.
    Raises Invalid for an empty or too long text, or a limit outside 1 to 200. When the embedder fails, words decide.
    """
    check_query(text, limit)
    now = now or datetime.now(UTC)
    moved = False
    while True:
        with tenant_transaction(tenant_id):
            asked = _know(agent_id, [text])
        vector = _embed(tenant_id, agent_id, _read(text, asked, now).meaning_text, asked.model)
        with tenant_transaction(tenant_id):
            known = _know(agent_id, [text])
            if vector is None or moved or known.model == asked.model:
                found = _recall(agent_id, text, known, vector, asked.model, limit, now)
                if counts:
                    note_recall(agent_id=agent_id, recalled={memory.id: memory.score for memory in found})
                return found
        # It was moved to another embedding model meanwhile: ask that one, once.
        moved = True


def check_query(text: str, limit: int) -> None:
    """Raise Invalid for a query that cannot be answered."""
    if not text.strip() or len(text) > QUERY_LENGTH or "\0" in text:
        raise Invalid(f"a query is 1 to {QUERY_LENGTH} characters without NUL, got {len(text)}")
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"a recall returns 1 to {MAX_LIMIT} memories, asked for {limit}")


def meaning_texts(*, agent_id: UUID, texts: Iterable[str], now: datetime) -> dict[str, str]:
    """Return, for each query, the text to embed: without the names of those whose words are remembered. One query."""
    wanted = list(dict.fromkeys(texts))
    if not wanted:
        return {}
    known = _know(agent_id, wanted)
    return {text: _read(text, known, now).meaning_text for text in wanted}


def recall_in_scope(
    *,
    agent_id: UUID,
    text: str,
    vector: Sequence[float] | None,
    limit: int,
    now: datetime | None = None,
    without_session: str = "",
    model: EmbeddingModel | None = None,
) -> list[Recalled]:
    """Recall in the transaction that is open, given the query's vector, if there is one. Two statements.

    Memories of `without_session`, if named, are left out. `model` made the vector: where the agent's are of another by
    now, words alone decide.
    """
    check_query(text, limit)
    now = now or datetime.now(UTC)
    return _recall(agent_id, text, _know(agent_id, [text]), vector, model, limit, now, without_session)


def _recall(
    agent_id: UUID,
    text: str,
    known: _Known,
    vector: Sequence[float] | None,
    model: EmbeddingModel | None,
    limit: int,
    now: datetime,
    without_session: str = "",
) -> list[Recalled]:
    reading = _read(text, known, now)
    rows, background = _fetch(agent_id, reading, vector, model, limit, now, without_session)
    ranked = rank(
        [_candidate(row) for row in rows.values()],
        reading=reading,
        background=background,
        now=now,
        limit=limit,
    )
    return [_recalled(rows[each.id], each.terms) for each in ranked]


def _know(agent_id: UUID, texts: Iterable[str]) -> _Known:
    places = {place for text in texts for place in looked_up(query_terms(text))}
    df: dict[int, int] = {}
    model: EmbeddingModel | None = None
    for term, number, name in fetch(_KNOWN, agent=agent_id, terms=[*places, ALL_MEMORIES]):
        if term is None:
            model = EmbeddingModel(name=name, dimension=number)
        else:
            df[term] = number
    return _Known(documents=df.pop(ALL_MEMORIES, 0), df=df, model=model)


def _read(text: str, known: _Known, now: datetime) -> Reading:
    return read_query(text, df=known.df, documents=known.documents, now=now)


def _embed(
    tenant_id: UUID, agent_id: UUID, meaning: str, model: EmbeddingModel | None
) -> Sequence[float] | None:
    """Return the query's vector; none when the agent's embedder cannot be asked: words must do."""
    try:
        vector: list[float] = embed_texts(tenant_id=tenant_id, texts=[meaning], model=model)[0].tolist()
    except EmbeddingFailed as error:
        log.warning("recall_by_words_alone", agent_id=str(agent_id), error=str(error))
        return None
    return vector


def _fetch(
    agent_id: UUID,
    reading: Reading,
    vector: Sequence[float] | None,
    model: EmbeddingModel | None,
    limit: int,
    now: datetime,
    without_session: str,
) -> tuple[dict[UUID, _Row], Background]:
    around = reading.span.around() if reading.span else None
    with connection.cursor() as cursor:
        cursor.execute(
            _CANDIDATES,
            {
                "tenant": current_tenant(),
                "agent": agent_id,
                "now": now,
                **query_vector(vector, model),
                "lexical": sparsevec_text(reading.lexical),
                "kept": max(SEEDS, limit),
                "kept_by_time": SPAN_SEEDS if around else 0,
                "from": around[0] if around else now,
                "to": around[1] if around else now,
                "beside": _MEANING_BESIDE_WORDS,
                "reach": REACH,
                "most_beside": _MOST_BESIDE,
                "without": without_session or None,
            },
        )
        rows = cursor.fetchall()
    background = Background(mean=0.0, deviation=0.0)
    if rows:
        background = Background(mean=rows[0][-2], deviation=rows[0][-1])
    return {row[0]: row for row in rows}, background


def _candidate(row: _Row) -> Candidate:
    return Candidate(
        id=row[0],
        words=row[11],
        similarity=row[10],
        session=row[4],
        position=row[5],
        role=row[3],
        asks="?" in row[2],
        occurred_at=row[6],
        last_access_at=row[12],
        importance=row[7],
        decay_rate=row[8],
        trust=row[9],
    )


def _recalled(row: _Row, terms: ScoreTerms) -> Recalled:
    return Recalled(
        id=row[0],
        type=MemoryType(row[1]),
        content=row[2],
        role=row[3],
        session=row[4],
        occurred_at=row[6],
        importance=row[7],
        terms=terms,
    )
