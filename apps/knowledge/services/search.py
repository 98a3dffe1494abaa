"""Search all sources of an agent: its memories, the audit log, outputs of workflows, documents (seed 001, `search_my_memories`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from django.conf import settings

from apps.agents.services.lookup import agent_by_id
from apps.authority.services.explanations import authority_of
from apps.authority.services.modes import trust_of
from apps.knowledge.services import passage_queries
from apps.knowledge.services.passage_search import log_source_failure, query_vector_of
from apps.knowledge.services.search_sources import NotComparable, SourceQuery, read_of
from apps.memories.services.embedding.minds import installation_model, model_of
from apps.tenants.round_trip import FailedRead, read_together
from apps.tenants.scope import tenant_transaction
from arbor.authority.grants import AUDIT_RESOURCE
from arbor.errors import Invalid
from arbor.heartbeat.needs import SourceSearch
from arbor.knowledge.merging import (
    MAX_RESULTS,
    MemorySearch,
    SearchSource,
    Shortfall,
    SourceFault,
    SourceResult,
    merge,
)
from arbor.knowledge.search_terms import search_term
from arbor.memory.recall.recall_request import check_query_text

#: The most results of one search.
MAX_FOUND = 25

_NO_VECTOR = "the embedder did not answer, or could not be waited for"


def search_my_memories(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    text: str,
    term: str = "",
    limit: int = MAX_RESULTS,
    only: Sequence[SearchSource] = tuple(SearchSource),
) -> MemorySearch:
    """Search the four sources of an agent about a text, and return the best results.

    Call it outside any transaction, because the text is embedded. The audit log and outputs of workflows are searched for `term`, by
    default a part of the text (`search_term`). The audit log is only searched if the agent may read it. Raises Invalid and NotFound.
    """
    if not 1 <= limit <= MAX_FOUND:
        raise Invalid(f"a search returns 1 to {MAX_FOUND} results, asked for {limit}")
    check_query_text(text)
    now = datetime.now(UTC)
    with tenant_transaction(tenant_id):
        agent_by_id(agent_id)
        model = model_of(agent_id)
        audit = _may_read_audit(agent_id, now)
    passage_vector = query_vector_of(tenant_id=tenant_id, text=text)
    query = SourceQuery(
        agent_id=agent_id,
        text=text,
        term=term.strip() or search_term(text),
        now=now,
        vector=passage_vector
        if model == installation_model()
        else query_vector_of(tenant_id=tenant_id, text=text, model=model),
        model=model,
        passage_vector=passage_vector,
    )
    with tenant_transaction(tenant_id):
        return search_sources(query, audit=audit, limit=limit, only=only)


def answer_search(need: SourceSearch) -> MemorySearch:
    """Search for a heartbeat, in its open transaction, with the vector of the need."""
    has_passage_vector = need.model is None or need.model == installation_model()
    query = SourceQuery(
        agent_id=need.agent_id,
        text=need.text,
        term=search_term(need.text),
        now=need.now,
        vector=need.vector,
        model=need.model,
        passage_vector=need.vector if has_passage_vector else None,
    )
    if not need.documents_only:
        return search_sources(query, audit=need.audit, limit=need.limit)
    # Results of one source keep their order: a merge would sort them anew.
    passages, faults = _read_sources(query, [SearchSource.KNOWLEDGE])
    return MemorySearch(results=passages[: need.limit], term="", faults=faults)


def _may_read_audit(agent_id: UUID, now: datetime) -> bool:
    authority = authority_of(agent_id)
    # Few agents have the grant, so the modes, which take further statements, are read for those only.
    return authority.permits(AUDIT_RESOURCE, now=now) and replace(
        authority, modes=trust_of(agent_id)
    ).permits(AUDIT_RESOURCE, now=now)


def search_sources(
    query: SourceQuery,
    *,
    audit: bool,
    limit: int = MAX_RESULTS,
    only: Sequence[SearchSource] = tuple(SearchSource),
) -> MemorySearch:
    """Search sources in the open transaction, and merge their results.

    One round trip, or two if HNSW found too few of the tenant's passages. A source that fails or takes too long is named among the faults; the results of the others are returned.
    """
    forbidden = [source for source in only if source is SearchSource.AUDIT and not audit]
    results, faults = _read_sources(query, [source for source in only if source not in forbidden])
    return MemorySearch(
        results=merge(
            results,
            now=query.now,
            limit=limit,
            weights=settings.ARBOR_SEARCH_WEIGHTS,
            half_life=settings.ARBOR_SEARCH_HALF_LIFE,
        ),
        term=query.term,
        faults=faults,
        forbidden=forbidden,
    )


def _read_sources(
    query: SourceQuery, sources: Sequence[SearchSource]
) -> tuple[list[SourceResult], list[SourceFault]]:
    """Return the results of sources, not merged yet, and the faults of sources that were not searched, or only in part."""
    faults = _faults_without_vectors(query, sources)
    reads = {source: read_of(source, query) for source in sources if _is_answerable(source, query)}
    setup = passage_queries.ITERATIVE_SCAN
    rows = read_together((source_read.read for source_read in reads.values()), setup=setup)
    exact_reads = (
        source_read.exact_read(answer)
        for source, source_read in reads.items()
        if not isinstance(answer := rows[source.value], FailedRead)
    )
    exact = read_together((read for read in exact_reads if read is not None), setup=setup)
    results: list[SourceResult] = []
    for source, source_read in reads.items():
        answer = rows[source.value]
        if isinstance(answer, FailedRead):
            faults[source] = SourceFault(source=source, reason=log_source_failure(source, answer.error))
            continue
        best = exact.get(source.value, answer)
        if isinstance(best, FailedRead):
            faults[source] = SourceFault(
                source=source, reason=log_source_failure(source, best.error), shortfall=Shortfall.APPROXIMATE
            )
            best = answer
        try:
            results += source_read.results(best)
        except NotComparable:
            faults[source] = SourceFault(
                source=source, reason="the agent's memories are moving to another embedder"
            )
    return results, list(faults.values())


def _faults_without_vectors(
    query: SourceQuery, sources: Sequence[SearchSource]
) -> dict[SearchSource, SourceFault]:
    """Return the faults of the sources that compare vectors, where the query has no vector for them."""
    vectors = (
        (SearchSource.MEMORY, query.vector, Shortfall.NOT_SEARCHED),
        (SearchSource.KNOWLEDGE, query.passage_vector, Shortfall.WORDS_ALONE),
    )
    return {
        source: SourceFault(source=source, reason=_NO_VECTOR, shortfall=shortfall)
        for source, vector, shortfall in vectors
        if vector is None and source in sources
    }


def _is_answerable(source: SearchSource, query: SourceQuery) -> bool:
    if source is SearchSource.MEMORY:
        return query.vector is not None
    return source is SearchSource.KNOWLEDGE or bool(query.term)
