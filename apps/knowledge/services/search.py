"""Search all that an agent may know: its memories, the audit log, outputs of workflows, documents (seed 001, `search_my_memories`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import structlog
from django.conf import settings
from psycopg.errors import QueryCanceled

from apps.agents.services.profile import agent_by_id
from apps.authority.services.explaining import authority_of
from apps.authority.services.modes import trust_of
from apps.knowledge.services import passage_queries
from apps.knowledge.services.passage_search import (
    PassageQuery,
    min_similarity,
    passage_candidates,
    query_vector_of,
)
from apps.knowledge.services.search_sources import NotComparable, SourceQuery, passage_result, read_of
from apps.memories.services.embedding.minds import installation_model, model_of
from apps.tenants.round_trip import FailedRead, read_together
from apps.tenants.scope import tenant_transaction
from arbor.authority.grants import AUDIT_RESOURCE
from arbor.errors import Invalid
from arbor.heartbeat.needs import SourceSearch
from arbor.knowledge.found_passages import fuse
from arbor.knowledge.merging import MOST_RESULTS, MemorySearch, SearchSource, SourceFault, SourceResult, merge
from arbor.knowledge.search_terms import search_term

log = structlog.get_logger(__name__)

#: The most results of one search.
MOST_FOUND = 25


def search_my_memories(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    text: str,
    term: str = "",
    limit: int = MOST_RESULTS,
    only: Sequence[SearchSource] = tuple(SearchSource),
) -> MemorySearch:
    """Search the four sources of an agent about a text, and return the best results.

    Outside any transaction, because the text is embedded. The audit log and outputs of workflows are searched for `term`, by default
    a part of the text (`search_term`). The audit log is only searched if the agent may read it. Raises Invalid and NotFound.
    """
    if not 1 <= limit <= MOST_FOUND:
        raise Invalid(f"a search returns 1 to {MOST_FOUND} results, asked for {limit}")
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
    """Search for a heartbeat, in its open transaction, by the vector that it has already."""
    here = need.model is None or need.model == installation_model()
    passage_vector = need.vector if here else None
    if need.documents_only:
        asked = PassageQuery(text=need.text, agent_id=need.agent_id, limit=need.limit)
        found = fuse(
            passage_candidates(asked, passage_vector), limit=need.limit, min_similarity=min_similarity()
        )
        return MemorySearch(results=[passage_result(passage) for passage in found], term="")
    query = SourceQuery(
        agent_id=need.agent_id,
        text=need.text,
        term=search_term(need.text),
        now=need.now,
        vector=need.vector,
        model=need.model,
        passage_vector=passage_vector,
    )
    return search_sources(query, audit=need.audit, limit=need.limit)


def _may_read_audit(agent_id: UUID, now: datetime) -> bool:
    authority = authority_of(agent_id)
    # Few agents have the grant, and what blocks one takes further statements.
    return authority.permits(AUDIT_RESOURCE, now=now) and replace(
        authority, modes=trust_of(agent_id)
    ).permits(AUDIT_RESOURCE, now=now)


def search_sources(
    query: SourceQuery,
    *,
    audit: bool,
    limit: int = MOST_RESULTS,
    only: Sequence[SearchSource] = tuple(SearchSource),
) -> MemorySearch:
    """Search sources in one round trip, in the open transaction, and merge their results.

    A source that fails or takes too long is named among `missing`, and the others answer.
    """
    forbidden = [source for source in only if source is SearchSource.AUDIT and not audit]
    missing: list[SourceFault] = []
    reads = {}
    for source in only:
        if source in forbidden or (source in (SearchSource.AUDIT, SearchSource.WORKFLOW) and not query.term):
            continue
        if source is SearchSource.MEMORY and query.vector is None:
            missing.append(
                SourceFault(
                    source=source, reason="its embedder did not answer, or is not waited for on a page"
                )
            )
            continue
        reads[source] = read_of(source, query)
    setup = passage_queries.ITERATIVE_SCAN
    rows = read_together((one.read for one in reads.values()), setup=setup)
    again = [
        more
        for source, one in reads.items()
        if not isinstance(answer := rows[source.value], FailedRead)
        and (more := one.again(answer)) is not None
    ]
    if again:
        rows |= read_together(again, setup=setup)
    results: list[SourceResult] = []
    for source, one in reads.items():
        answer = rows[source.value]
        try:
            if isinstance(answer, FailedRead):
                missing.append(SourceFault(source=source, reason=_reason(source, answer.error)))
            else:
                results += one.results(answer)
        except NotComparable:
            missing.append(
                SourceFault(source=source, reason="the agent's memories are moving to another embedder")
            )
    return MemorySearch(
        results=merge(
            results,
            now=query.now,
            limit=limit,
            weights=settings.ARBOR_SEARCH_WEIGHTS,
            half_life=settings.ARBOR_SEARCH_HALF_LIFE,
        ),
        term=query.term,
        missing=missing,
        forbidden=forbidden,
    )


def _reason(source: SearchSource, error: Exception) -> str:
    log.warning("search_source_failed", source=source.value, error=str(error))
    if isinstance(error, QueryCanceled) or isinstance(error.__cause__, QueryCanceled):
        return f"it took longer than {settings.ARBOR_SEARCH_SOURCE_MS} ms"
    return "it failed"
