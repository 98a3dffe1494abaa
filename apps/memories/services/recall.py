"""The two doors of recall: `recall`, which opens its own transactions, and `Recaller`, for the transaction that is open.

Nothing is approximate: every memory of the agent is scored, and one ranker orders the best with their neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog
from django.conf import settings

from apps.memories.services.activation import note_recall
from apps.memories.services.embedding import embed_query
from apps.memories.services.recall_at_hand import find_at_hand
from apps.memories.services.scan import Found, Query, scan
from apps.memories.services.term_statistics import TermStatistics, read_term_statistics
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed
from arbor.memory.candidates import moment
from arbor.memory.filters import EVERYTHING, RecallFilter
from arbor.memory.fusion import Ranked, all_terms, rank, select_best
from arbor.memory.lexical import looked_up, query_terms
from arbor.memory.query import read_query
from arbor.memory.recall_request import RecallRequest
from arbor.memory.values import MemoryType, Recalled

log = structlog.get_logger(__name__)

_CONTENTS = """
SELECT id, content FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""


class Recaller:
    """The recalls of one transaction, for several agents of its tenant.

    Term statistics are read once: reading the meaning texts of queries and recalling about the same words asks for them
    once, so what is stored in between makes its words no more frequent.
    """

    def __init__(self) -> None:
        self._terms: dict[UUID, frozenset[int]] = {}
        self._statistics: dict[UUID, TermStatistics] = {}

    def meaning_texts(self, asked: Sequence[tuple[UUID, str]], now: datetime) -> list[str]:
        """Return, for each agent and query, the text to embed: without the names of those whose words are remembered.

        One statement for all agents.
        """
        statistics = self._read_statistics(asked)
        return [
            read_query(text, df=found.df, documents=found.documents, now=now).meaning_text
            for text, found in ((text, statistics[agent_id]) for agent_id, text in asked)
        ]

    def recall(self, requests: Sequence[RecallRequest]) -> list[list[Recalled]]:
        """Return what each request brings to mind, best first, each memory with the terms of its score."""
        return _recalled(find(self.queries(requests)))

    def queries(self, requests: Sequence[RecallRequest]) -> list[Query]:
        """Return the requests with their words weighed by the agents' statistics. One statement at most."""
        statistics = self._read_statistics([(request.agent_id, request.text) for request in requests])
        return [_query(request, statistics[request.agent_id]) for request in requests]

    def model_of(self, agent_id: UUID) -> EmbeddingModel | None:
        """Return the model of an agent's vectors, as it was read with its statistics."""
        return self._statistics[agent_id].model

    def _read_statistics(self, asked: Sequence[tuple[UUID, str]]) -> Mapping[UUID, TermStatistics]:
        terms: dict[UUID, set[int]] = {}
        for agent_id, text in asked:
            terms.setdefault(agent_id, set()).update(looked_up(query_terms(text)))
        missing: dict[UUID, Collection[int]] = {
            agent_id: self._terms.get(agent_id, frozenset()) | wanted
            for agent_id, wanted in terms.items()
            if agent_id not in self._terms or not wanted <= self._terms[agent_id]
        }
        self._statistics |= read_term_statistics(missing)
        self._terms |= {agent_id: frozenset(wanted) for agent_id, wanted in missing.items()}
        return self._statistics


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
    request = RecallRequest(
        agent_id=agent_id, text=text, limit=limit, now=now or datetime.now(UTC), only=only, mood=mood
    )
    moved = False
    while True:
        recaller = Recaller()
        with tenant_transaction(tenant_id):
            (meaning,) = recaller.meaning_texts([(agent_id, text)], request.now)
        model = recaller.model_of(agent_id)
        request = replace(request, vector=_embed(tenant_id, agent_id, meaning, model), model=model)
        with tenant_transaction(tenant_id):
            ((query, found),) = find(recaller.queries([request]))
            if request.vector is None or moved or found.compared:
                (memories,) = _recalled([(query, found)])
                if counts:
                    note_recall(agent_id=agent_id, recalled={memory.id: memory.score for memory in memories})
                return memories
        # It was moved to another embedding model meanwhile: ask that one, once.
        moved = True


def find(queries: Sequence[Query]) -> list[tuple[Query, Found]]:
    """Return what each query finds, not ranked yet: from a mind at hand, or by a scan."""
    return [
        (query, found or scan(query)) for query, found in zip(queries, find_at_hand(queries), strict=True)
    ]


def consider(request: RecallRequest) -> tuple[Query, Found]:
    """Return all that a request ranks, not ranked yet, and the query as it was read. Two statements."""
    (query,) = Recaller().queries([request])
    return query, scan(query)


def _query(request: RecallRequest, statistics: TermStatistics) -> Query:
    return Query(
        request=request,
        reading=read_query(request.text, df=statistics.df, documents=statistics.documents, now=request.now),
        documents=statistics.documents,
        weights=settings.ARBOR_RECALL_WEIGHTS,
    )


def _recalled(answers: Sequence[tuple[Query, Found]]) -> list[list[Recalled]]:
    """Return the best of what each query found, whole; what was deleted a moment ago is left out."""
    ranked = [(found, _ranked(query, found)) for query, found in answers]
    ids = list({place.id: None for _, places in ranked for place in places})
    contents: dict[UUID, str] = dict(fetch(_CONTENTS, ids=ids)) if ids else {}
    return [
        [_whole(found, place, contents[place.id]) for place in places if place.id in contents]
        for found, places in ranked
    ]


def _ranked(query: Query, found: Found) -> list[Ranked]:
    if found.lasting is not None:
        terms = all_terms(found.lasting, found.candidates, now=query.request.now, weights=query.weights)
        return select_best(found.candidates, terms, query.request.limit)
    return rank(
        found.candidates,
        reading=query.reading,
        background=found.background,
        now=query.request.now,
        limit=query.request.limit,
        weights=query.weights,
        links=found.links,
        mood=query.request.mood,
    )


def _whole(found: Found, place: Ranked, content: str) -> Recalled:
    return Recalled(
        id=place.id,
        type=MemoryType(found.type[place.index]),
        content=content,
        role=found.candidates.role[place.index],
        session=found.session[place.index],
        occurred_at=moment(found.candidates.occurred[place.index]),
        importance=float(found.candidates.importance[place.index]),
        terms=place.terms,
    )


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
