"""Recall: one statement scores all of an agent's memories and brings the best with their neighbours, one ranker orders them.

Nothing is approximate: the scan reads `memories_memory_mind` alone and scores every memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

import structlog
from django.conf import settings

from apps.memories.services.activation import note_recall
from apps.memories.services.embedding import embed_query
from apps.memories.services.remember import ALL_MEMORIES
from apps.memories.services.scan import Found, Query, scan
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed, Invalid
from arbor.memory.candidates import moment
from arbor.memory.filters import EVERYTHING, RecallFilter
from arbor.memory.fusion import rank
from arbor.memory.lexical import looked_up, query_terms
from arbor.memory.query import Reading, read_query
from arbor.memory.values import MemoryType, Recalled

log = structlog.get_logger(__name__)

#: The most one recall returns, and the longest query it reads.
MAX_LIMIT = 200
QUERY_LENGTH = 4_000
_CONTENTS = """
SELECT id, content FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""
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
    only: RecallFilter = EVERYTHING,
    mood: float | None = None,
) -> list[Recalled]:
    """Return what an agent remembers about a text, best first, each with the terms of its score.

    `counts` says that the agent itself recalls: its memories are marked as used. A person's look never does that.
    `mood` is how the one who recalls feels, -1 to 1: what felt alike comes a little sooner.
    Raises Invalid for an empty or too long text, a limit outside 1 to 200, or a mood that is none. When the embedder
    fails, words decide.
    """
    check_query(text, limit, mood)
    now = now or datetime.now(UTC)
    moved = False
    while True:
        with tenant_transaction(tenant_id):
            asked = _know(agent_id, [text])
        vector = _embed(tenant_id, agent_id, _read(text, asked, now).meaning_text, asked.model)
        with tenant_transaction(tenant_id):
            query = _query(agent_id, text, asked, vector, asked.model, limit, now, only, mood)
            found = scan(query)
            if vector is None or moved or found.compared:
                memories = _ranked(query, found)
                if counts:
                    note_recall(agent_id=agent_id, recalled={memory.id: memory.score for memory in memories})
                return memories
        # It was moved to another embedding model meanwhile: ask that one, once.
        moved = True


def check_query(text: str, limit: int, mood: float | None = None) -> None:
    """Raise Invalid for a query that cannot be answered."""
    if not text.strip() or len(text) > QUERY_LENGTH or "\0" in text:
        raise Invalid(
            f"a query is 1 to {QUERY_LENGTH} characters without NUL, not white space alone, got {len(text)}"
        )
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"a recall returns 1 to {MAX_LIMIT} memories, asked for {limit}")
    if mood is not None and not -1 <= mood <= 1:
        raise Invalid(f"a mood is a number from -1 to 1, got {mood}")


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
    only: RecallFilter = EVERYTHING,
    mood: float | None = None,
) -> list[Recalled]:
    """Recall in the transaction that is open, given the query's vector, if there is one. Two statements, one more for
    long texts.

    Memories of `without_session`, if named, are left out. `model` made the vector: where the agent's are of another by
    now, words alone decide. `mood` is how the agent feels, -1 to 1, if that is to colour what it recalls.
    """
    if without_session:
        only = replace(only, without_session=without_session)
    query, found = consider(
        agent_id=agent_id,
        text=text,
        vector=vector,
        limit=limit,
        now=now or datetime.now(UTC),
        model=model,
        only=only,
        mood=mood,
    )
    return _ranked(query, found)


def consider(
    *,
    agent_id: UUID,
    text: str,
    vector: Sequence[float] | None,
    limit: int,
    now: datetime,
    model: EmbeddingModel | None = None,
    only: RecallFilter = EVERYTHING,
    mood: float | None = None,
) -> tuple[Query, Found]:
    """Return all that `recall_in_scope` ranks, not ranked yet, and what it was asked. Two statements."""
    check_query(text, limit, mood)
    query = _query(agent_id, text, _know(agent_id, [text]), vector, model, limit, now, only, mood)
    return query, scan(query)


def _query(
    agent_id: UUID,
    text: str,
    known: _Known,
    vector: Sequence[float] | None,
    model: EmbeddingModel | None,
    limit: int,
    now: datetime,
    only: RecallFilter,
    mood: float | None,
) -> Query:
    return Query(
        agent_id=agent_id,
        reading=_read(text, known, now),
        documents=known.documents,
        vector=vector,
        model=model,
        limit=limit,
        now=now,
        only=only,
        weights=settings.ARBOR_RECALL_WEIGHTS,
        mood=mood,
    )


def _ranked(query: Query, found: Found) -> list[Recalled]:
    """Return the best of what was found whole, in order; a long text that was deleted a moment ago is left out."""
    ranked = rank(
        found.candidates,
        reading=query.reading,
        background=found.background,
        now=query.now,
        limit=query.limit,
        weights=query.weights,
        links=found.links,
        mood=query.mood,
    )
    long = [each.id for each in ranked if found.content[each.index] is None]
    contents: dict[UUID, str] = dict(fetch(_CONTENTS, ids=long)) if long else {}
    return [
        Recalled(
            id=each.id,
            type=MemoryType(found.type[each.index]),
            content=content,
            role=found.candidates.role[each.index],
            session=found.session[each.index],
            occurred_at=moment(found.candidates.occurred[each.index]),
            importance=float(found.candidates.importance[each.index]),
            terms=each.terms,
        )
        for each in ranked
        if (content := found.content[each.index] or contents.get(each.id)) is not None
    ]


@contextmanager
def knowing_once() -> Iterator[None]:
    """Read how rare an agent's words are once within the block, for one that recalls about the same words again.

    For a part of a heartbeat: what is stored within the block makes its words no more frequent until it ends.
    """
    token = _read_already.set({})
    try:
        yield
    finally:
        _read_already.reset(token)


_read_already: ContextVar[dict[UUID, tuple[frozenset[int], _Known]] | None] = ContextVar(
    "arbor_read_already", default=None
)


def _know(agent_id: UUID, texts: Iterable[str]) -> _Known:
    places = frozenset(place for text in texts for place in looked_up(query_terms(text)))
    already = _read_already.get()
    if already is None:
        return _look_up(agent_id, places)
    looked, known = already.get(agent_id, (frozenset[int](), None))
    if known is None or not places <= looked:
        known = _look_up(agent_id, places)
        already[agent_id] = places, known
    return known


def _look_up(agent_id: UUID, places: Iterable[int]) -> _Known:
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
        vector: list[float] = embed_query(tenant_id=tenant_id, texts=[meaning], model=model)[0].tolist()
    except EmbeddingFailed as error:
        log.warning("recall_by_words_alone", agent_id=str(agent_id), error=str(error))
        return None
    return vector
