"""The entry points of recall: `recall` opens its own transactions, `Recaller` uses the open one.

Nothing is approximate: every memory of the agent is scored, and one ranker orders the best with their neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog
from django.conf import settings

from apps.memories.services.embedding.embedding import embed_query
from apps.memories.services.recall import queries
from apps.memories.services.recall.activation import record_recall
from apps.memories.services.recall.cached_recall import find_in_cached_minds
from apps.memories.services.recall.mind_cache import MINDS, CachedMind
from apps.memories.services.recall.scan import Query, ScanResult, StoredText, scan
from apps.memories.services.store.term_counts import TermStatistics, read_term_statistics
from apps.tenants.encoding import from_json
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed
from arbor.memory.detail_text import detail_lines
from arbor.memory.mind.row_filter import can_answer
from arbor.memory.recall.candidates import moment
from arbor.memory.recall.fusion import RankedCandidate, ScoreInputs, all_terms, rank, select_best
from arbor.memory.recall.recall_request import RecallRequest, meaning_text, read_query
from arbor.memory.text.lexical import counted_indices, query_terms
from arbor.memory.values import MemoryType, Recalled

log = structlog.get_logger(__name__)

#: A query is embedded so often: when what it was expected to mean was wrong, and when its agent was moved meanwhile.
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The text of a query that is embedded, and the model that embeds it; None: the installation's."""

    text: str
    model: EmbeddingModel | None


class Recaller:
    """The recalls of one transaction, for several agents of its tenant.

    Term statistics are read once: reading the meaning texts of queries and recalling about the same words asks for them
    once, so what is stored in between makes its words no more frequent.
    """

    def __init__(self) -> None:
        self._terms: dict[UUID, frozenset[int]] = {}
        self._statistics: dict[UUID, TermStatistics] = {}

    def meaning_texts(self, asked: Sequence[tuple[UUID, str]]) -> list[str]:
        """Return, for each agent and query, the text to embed: without the names of people whose utterances are remembered.

        One statement for all agents.
        """
        return [meaning.text for meaning in self.meanings(asked)]

    def meanings(self, asked: Sequence[tuple[UUID, str]]) -> list[Meaning]:
        """Return, for each agent and query, the text to embed, and the model of the agent's vectors. One statement."""
        self._read_statistics(asked)
        return [
            Meaning(text=meaning_text(text, statistics.df), model=statistics.model)
            for agent_id, text in asked
            for statistics in (self._statistics[agent_id],)
        ]

    def recall(self, requests: Sequence[RecallRequest]) -> list[list[Recalled]]:
        """Return the memories that each request recalls, best first, each with its score components."""
        minds = self.open_minds(requests)
        return recalled(find(self.queries(requests), minds))

    def open_minds(self, requests: Sequence[RecallRequest]) -> dict[UUID, CachedMind]:
        """Return the cached minds that answer these requests, and read the statistics of the requests' terms.

        One statement where all minds are cached, up to three where they are not. Call it again after writing memories.
        """
        missing = self._missing([(request.agent_id, request.text) for request in requests])
        agent_ids = {request.agent_id for request in requests if can_answer(request.only)}
        minds = MINDS.bring_up_to_date({agent_id: missing.get(agent_id) for agent_id in agent_ids})
        known = missing.keys() & minds.keys()
        self._add_statistics(
            {agent_id: missing[agent_id] for agent_id in known},
            {agent_id: minds[agent_id].statistics for agent_id in known},
        )
        self._read_statistics([(request.agent_id, request.text) for request in requests])
        absent = agent_ids - minds.keys()
        if absent:
            minds |= MINDS.load({agent_id: self._statistics[agent_id].documents for agent_id in absent})
        return minds

    def queries(self, requests: Sequence[RecallRequest]) -> list[Query]:
        """Return the requests with their words weighed by the agents' statistics. One statement at most."""
        self._read_statistics([(request.agent_id, request.text) for request in requests])
        return [
            Query(
                request=request,
                reading=read_query(
                    request.text, df=statistics.df, documents=statistics.documents, now=request.now
                ),
                documents=statistics.documents,
                weights=settings.ARBOR_RECALL_WEIGHTS,
            )
            for request in requests
            for statistics in (self._statistics[request.agent_id],)
        ]

    def _read_statistics(self, asked: Sequence[tuple[UUID, str]]) -> None:
        missing = self._missing(asked)
        if missing:
            self._add_statistics(missing, read_term_statistics(missing))

    def _missing(self, asked: Sequence[tuple[UUID, str]]) -> dict[UUID, frozenset[int]]:
        """Return all terms of the agents of which not every term is known."""
        terms: dict[UUID, set[int]] = {}
        for agent_id, text in asked:
            terms.setdefault(agent_id, set()).update(counted_indices(query_terms(text)))
        return {
            agent_id: self._terms.get(agent_id, frozenset()) | wanted
            for agent_id, wanted in terms.items()
            if agent_id not in self._terms or not wanted <= self._terms[agent_id]
        }

    def _add_statistics(
        self, terms: Mapping[UUID, frozenset[int]], statistics: Mapping[UUID, TermStatistics]
    ) -> None:
        self._terms |= terms
        self._statistics |= statistics


def recall(*, tenant_id: UUID, request: RecallRequest, counts: bool = False) -> list[Recalled]:
    """Return the memories that an agent has about a text, best first, each with its score components.

    With `counts`, the agent itself recalls, and the memories are marked as used; a person's search must not set it.
    The request's text is embedded between transactions. If the embedder fails, memories are scored by words only.
    """
    asked = [(request.agent_id, request.text)]
    recaller = Recaller()
    meaning = _expected_meaning(tenant_id, request)
    if meaning is None:
        with tenant_transaction(tenant_id):
            (meaning,) = recaller.meanings(asked)
    tries = _TRIES
    while True:
        tries -= 1
        request = replace(request, vector=_embed(tenant_id, request.agent_id, meaning), model=meaning.model)
        with tenant_transaction(tenant_id):
            minds = recaller.open_minds([request])
            (current,) = recaller.meanings(asked)
            if current == meaning or not tries:
                ((query, found),) = find(recaller.queries([request]), minds)
                if request.vector is None or found.compared or not tries:
                    return _finish_recall(query, found, counts=counts)
                # The agent was moved to another embedding model meanwhile: embed the text by that model.
                recaller = Recaller()
                (current,) = recaller.meanings(asked)
        meaning = current


def _finish_recall(query: Query, found: ScanResult, *, counts: bool) -> list[Recalled]:
    (memories,) = recalled([(query, found)])
    if counts:
        scores = {memory.id: memory.score for memory in memories}
        record_recall(agent_id=query.request.agent_id, recalled=scores)
    return memories


def _expected_meaning(tenant_id: UUID, request: RecallRequest) -> Meaning | None:
    """Return the text to embed by the term statistics of the cached mind's last recall; None if the mind is not cached.

    This saves a transaction before the embedding. The statistics may be stale, so the caller compares the result with a new
    one in the transaction that recalls.
    """
    terms = counted_indices(query_terms(request.text))
    known = MINDS.term_statistics(tenant_id, request.agent_id, terms)
    if known is None:
        return None
    return Meaning(text=meaning_text(request.text, known.df), model=known.model)


def consider(request: RecallRequest) -> tuple[Query, ScanResult]:
    """Return all that a request ranks, not ranked yet, and the query as it was read. Two statements."""
    (query,) = Recaller().queries([request])
    return query, scan(query)


def _embed(tenant_id: UUID, agent_id: UUID, meaning: Meaning) -> Sequence[float] | None:
    """Return the query's vector; none when the agent's embedder cannot be asked: words must do."""
    try:
        vector: list[float] = embed_query(tenant_id=tenant_id, texts=[meaning.text], model=meaning.model)[
            0
        ].tolist()
    except EmbeddingFailed as error:
        log.warning("recall_lexical_fallback", agent_id=str(agent_id), error=str(error))
        return None
    return vector


def find(queries: Sequence[Query], minds: Mapping[UUID, CachedMind]) -> list[tuple[Query, ScanResult]]:
    """Return the candidates of each query, not ranked yet: from a cached mind, or by a scan."""
    found = find_in_cached_minds(queries, minds)
    return [(query, here or scan(query)) for query, here in zip(queries, found, strict=True)]


def recalled(answers: Sequence[tuple[Query, ScanResult]]) -> list[list[Recalled]]:
    """Return the best of what each query found, whole; what was deleted a moment ago is left out."""
    ranked = [(found, _ranked(query, found)) for query, found in answers]
    missing = {place.id for found, places in ranked for place in places if place.index not in found.texts}
    texts = _read_texts(missing)
    return [
        [
            _whole(found, place, text)
            for place in places
            if (text := found.texts.get(place.index, texts.get(place.id))) is not None
        ]
        for found, places in ranked
    ]


def _read_texts(ids: Collection[UUID]) -> dict[UUID, StoredText]:
    rows = fetch(queries.CONTENTS, ids=sorted(ids)) if ids else ()
    return {memory_id: StoredText(content, detail) for memory_id, content, detail in rows}


def _ranked(query: Query, found: ScanResult) -> list[RankedCandidate]:
    if found.lasting is not None:
        terms = all_terms(found.lasting, found.candidates, now=query.request.now, weights=query.weights)
        return select_best(found.candidates, terms, query.request.limit)
    return rank(
        ScoreInputs(
            candidates=found.candidates,
            reading=query.reading,
            background=found.background,
            weights=query.weights,
            links=found.links,
            mood=query.request.mood,
        ),
        now=query.request.now,
        limit=query.request.limit,
    )


def _whole(found: ScanResult, place: RankedCandidate, text: StoredText) -> Recalled:
    kind = MemoryType(found.type[place.index])
    return Recalled(
        id=place.id,
        type=kind,
        content=text.content,
        role=found.candidates.role[place.index],
        session=found.session[place.index],
        occurred_at=moment(found.candidates.occurred[place.index]),
        importance=float(found.candidates.importance[place.index]),
        terms=place.terms,
        trust=float(found.candidates.trust[place.index]),
        details=detail_lines(kind, from_json(text.detail)) if text.detail else (),
    )
