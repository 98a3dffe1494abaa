"""The entry points of recall: `recall` opens its own transactions, `Recaller` uses the open one.

Nothing is approximate: every memory of the agent is scored, and one ranking sorts the best ones and their neighbors.
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
from apps.memories.services.recall.scan import (
    Query,
    ScanResult,
    StoredText,
    limited_candidates,
    scan,
    score_inputs,
)
from apps.memories.services.store.term_counts import TermStatistics, read_term_statistics
from apps.tenants.encoding import from_json
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed
from arbor.memory.detail_text import detail_lines
from arbor.memory.mind.row_filter import can_answer
from arbor.memory.recall.candidates import moment
from arbor.memory.recall.fusion import RankedCandidate, all_components, lasting_components, select_best
from arbor.memory.recall.recall_request import RecallRequest, meaning_text, read_query
from arbor.memory.text.lexical import counted_indices, query_terms
from arbor.memory.values import MemoryType, Recalled

log = structlog.get_logger(__name__)

#: The most embeddings of a query: again if the expected text to embed was wrong, and if its agent was moved meanwhile.
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The text of a query that is embedded, and the model to embed it by; None: the installation's."""

    text: str
    model: EmbeddingModel | None


class Recaller:
    """The recalls of one transaction, for several agents of its tenant.

    The statistics of a term are read once, so memories that are stored between `meanings` and `recall` do not change them.
    """

    def __init__(self) -> None:
        self._terms: dict[UUID, frozenset[int]] = {}
        self._statistics: dict[UUID, TermStatistics] = {}

    def meaning_texts(self, agent_texts: Sequence[tuple[UUID, str]]) -> list[str]:
        """Return, for each agent and query, the text to embed: without the names of people whose utterances are remembered.

        One statement for all agents.
        """
        return [meaning.text for meaning in self.meanings(agent_texts)]

    def meanings(self, agent_texts: Sequence[tuple[UUID, str]]) -> list[Meaning]:
        """Return, for each agent and query, the text to embed, and the model of the agent's vectors. One statement."""
        self._read_statistics(agent_texts)
        return [
            Meaning(text=meaning_text(text, statistics.df), model=statistics.model)
            for agent_id, text in agent_texts
            for statistics in (self._statistics[agent_id],)
        ]

    def recall(self, requests: Sequence[RecallRequest]) -> list[list[Recalled]]:
        """Return the memories that each request recalls, best first, each with its score components."""
        minds = self.open_minds(requests)
        return read_best(_find(self.queries(requests), minds))

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
        """Return the requests as queries whose words are weighed by the agents' statistics. One statement at most."""
        self._read_statistics([(request.agent_id, request.text) for request in requests])
        return [
            Query(
                request=request,
                reading=read_query(
                    request.text, df=statistics.df, documents=statistics.documents, now=request.now
                ),
                memory_count=statistics.documents,
                weights=settings.ARBOR_RECALL_WEIGHTS,
            )
            for request in requests
            for statistics in (self._statistics[request.agent_id],)
        ]

    def _read_statistics(self, agent_texts: Sequence[tuple[UUID, str]]) -> None:
        missing = self._missing(agent_texts)
        if missing:
            self._add_statistics(missing, read_term_statistics(missing))

    def _missing(self, agent_texts: Sequence[tuple[UUID, str]]) -> dict[UUID, frozenset[int]]:
        """Return, for the agents with a term whose statistics were not read, all of their terms so far."""
        terms: dict[UUID, set[int]] = {}
        for agent_id, text in agent_texts:
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

    `counts` means that the agent itself recalls: the memories are marked as used. A person's search must not set it.
    The request's text is embedded between transactions. If the embedder fails, memories are scored by words only.
    """
    agent_texts = [(request.agent_id, request.text)]
    recaller = Recaller()
    meaning = _expected_meaning(tenant_id, request)
    if meaning is None:
        with tenant_transaction(tenant_id):
            (meaning,) = recaller.meanings(agent_texts)
    tries = _TRIES
    while True:
        tries -= 1
        request = replace(
            request, vector=embed_meaning(tenant_id, request.agent_id, meaning), model=meaning.model
        )
        with tenant_transaction(tenant_id):
            minds = recaller.open_minds([request])
            (current,) = recaller.meanings(agent_texts)
            if current == meaning or not tries:
                ((query, found),) = _find(recaller.queries([request]), minds)
                if request.vector is None or found.compared or not tries:
                    return _finish_recall(query, found, counts=counts)
                # The agent was moved to another embedding model meanwhile: embed the text by that model.
                recaller = Recaller()
                (current,) = recaller.meanings(agent_texts)
        meaning = current


def _finish_recall(query: Query, found: ScanResult, *, counts: bool) -> list[Recalled]:
    (memories,) = read_best([(query, found)])
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


def find_candidates(request: RecallRequest) -> tuple[Query, ScanResult]:
    """Return the query of a request, and its candidates by a scan, not ranked yet. Two statements."""
    (query,) = Recaller().queries([request])
    return query, scan(query)


def embed_meaning(tenant_id: UUID, agent_id: UUID, meaning: Meaning) -> list[float] | None:
    """Return the query's vector; None if the agent's embedder fails, and words alone decide."""
    try:
        vectors = embed_query(tenant_id=tenant_id, texts=[meaning.text], model=meaning.model)
    except EmbeddingFailed as error:
        log.warning("recall_lexical_fallback", agent_id=str(agent_id), error=str(error))
        return None
    vector: list[float] = vectors[0].tolist()
    return vector


def _find(queries: Sequence[Query], minds: Mapping[UUID, CachedMind]) -> list[tuple[Query, ScanResult]]:
    """Return the candidates of each query, not ranked yet: from a cached mind, or by a scan."""
    cached = find_in_cached_minds(queries, minds)
    return [(query, result or scan(query)) for query, result in zip(queries, cached, strict=True)]


def read_best(found: Sequence[tuple[Query, ScanResult]]) -> list[list[Recalled]]:
    """Return the best candidates of each query with their texts, best first, without memories that were deleted meanwhile.

    One statement at most.
    """
    rankings = [(result, _rank(query, result)) for query, result in found]
    missing = {
        candidate.id
        for result, ranking in rankings
        for candidate in ranking
        if candidate.index not in result.texts
    }
    texts = _read_texts(missing)
    return [
        [
            _as_recalled(result, candidate, text)
            for candidate in ranking
            if (text := result.texts.get(candidate.index, texts.get(candidate.id))) is not None
        ]
        for result, ranking in rankings
    ]


def _read_texts(ids: Collection[UUID]) -> dict[UUID, StoredText]:
    rows = fetch(queries.CONTENTS, ids=sorted(ids)) if ids else ()
    return {memory_id: StoredText(content, detail) for memory_id, content, detail in rows}


def _rank(query: Query, found: ScanResult) -> list[RankedCandidate]:
    lasting = lasting_components(score_inputs(query, found)) if found.lasting is None else found.lasting
    components = all_components(lasting, found.candidates, now=query.request.now, weights=query.weights)
    return select_best(
        found.candidates, components, query.request.limit, limited_candidates(query.request, found.session)
    )


def _as_recalled(found: ScanResult, ranked: RankedCandidate, text: StoredText) -> Recalled:
    index = ranked.index
    kind = MemoryType(found.type[index])
    return Recalled(
        id=ranked.id,
        type=kind,
        content=text.content,
        role=found.candidates.role[index],
        session=found.session[index],
        occurred_at=moment(found.candidates.occurred[index]),
        importance=float(found.candidates.importance[index]),
        components=ranked.components,
        trust=float(found.candidates.trust[index]),
        details=detail_lines(kind, from_json(text.detail)) if text.detail else (),
    )
