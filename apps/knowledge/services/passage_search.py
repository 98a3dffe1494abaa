"""Search the passages of documents: exactly in small tenants, by HNSW in large ones (decisions 0036 and 0042)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections
from psycopg.errors import QueryCanceled

from apps.knowledge.services import passage_queries
from apps.memories.services.embedding.embedders import name_of
from apps.memories.services.embedding.embedding import embed_query, embeds_here
from apps.memories.services.embedding.literals import halfvec_texts
from apps.memories.services.embedding.minds import half_precision, installation_model
from apps.tenants.encoding import from_json
from apps.tenants.round_trip import FailedRead, Read, Rows, read_together
from apps.tenants.scope import APP, tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed, Invalid
from arbor.knowledge.blocks import place_of
from arbor.knowledge.found_passages import MAX_PASSAGES, FoundPassage, fuse
from arbor.knowledge.merging import SearchSource, Shortfall, SourceFault, min_similarity_of
from arbor.memory.recall.recall_request import check_query_text
from arbor.memory.text.lexical import SATURATION, query_terms

log = structlog.get_logger(__name__)

#: A number of passages that no tenant has: all of them are scanned.
ALWAYS_EXACT = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageQuery:
    """A query for passages. Raises Invalid for a text that is empty or too long, and for a limit out of range."""

    text: str
    #: The agent that searches, and finds documents of its categories; None: a person, who finds all published documents.
    agent_id: UUID | None = None
    #: Only documents of this category; "" means documents without one, None those of all categories.
    category: str | None = None
    limit: int = 10

    def __post_init__(self) -> None:
        check_query_text(self.text)
        if not 1 <= self.limit <= MAX_PASSAGES:
            raise Invalid(
                f"a search of documents returns 1 to {MAX_PASSAGES} passages, asked for {self.limit}"
            )


@dataclass(frozen=True, kw_only=True)
class FoundPassages:
    """The passages that a search found, the best first."""

    passages: Sequence[FoundPassage]
    #: Whether vectors were compared; if the embedder does not answer, words alone decide.
    by_meaning: bool
    #: The reason why documents were not searched, or not exactly.
    fault: SourceFault | None = None

    @property
    def notes(self) -> list[str]:
        """Return the fault of the search as lines for people and prompts."""
        return [str(self.fault)] if self.fault else []


def search_passages(*, tenant_id: UUID, query: PassageQuery) -> FoundPassages:
    """Return the passages about a text, the best first, each with its citation.

    Call it outside any transaction, because the text is embedded; if the embedder fails, words alone decide. As in searches of all
    sources, a statement may take ARBOR_SEARCH_SOURCE_MS; the result names a statement that took longer as its fault.
    """
    vector = query_vector_of(tenant_id=tenant_id, text=query.text)
    with tenant_transaction(tenant_id):
        found, fault = passage_candidates(query, vector)
    return FoundPassages(
        passages=fuse(found, limit=query.limit, min_similarity=min_similarity()),
        by_meaning=vector is not None,
        fault=fault,
    )


def min_similarity() -> float:
    """Return the least cosine of passages that are found by their vectors alone."""
    return min_similarity_of(installation_model().name, chosen=settings.ARBOR_SEARCH_MIN_SIMILARITY)


def query_vector_of(
    *, tenant_id: UUID, text: str, model: EmbeddingModel | None = None
) -> Sequence[float] | None:
    """Return the vector of a text, by the installation's embedder or another one; None if the embedder does not answer.

    Inside a transaction, which must not wait for the network, also None for an embedder in another process.
    """
    if connections[APP].in_atomic_block and not embeds_here(model):
        return None
    try:
        vector: Sequence[float] = embed_query(tenant_id=tenant_id, texts=[text], model=model)[0].tolist()
    except EmbeddingFailed as error:
        log.warning("search_lexical_fallback", error=str(error))
        return None
    return vector


def passage_candidates(
    query: PassageQuery, vector: Sequence[float] | None
) -> tuple[list[FoundPassage], SourceFault | None]:
    """Return the MAX_PASSAGES nearest passages and as many with the best words, in no order, and the fault if there is one.

    In the open transaction, by one round trip, or two if HNSW found too few of the tenant's passages.
    """
    rows = _read_passages(passage_values(query, vector))
    if isinstance(rows, FailedRead):
        reason = log_source_failure(SearchSource.KNOWLEDGE, rows.error)
        return [], SourceFault(source=SearchSource.KNOWLEDGE, reason=reason)
    if not fell_short(rows, vector):
        return passages_from(rows), None
    exact = _read_passages(passage_values(query, vector, exact=ALWAYS_EXACT))
    if isinstance(exact, FailedRead):
        reason = log_source_failure(SearchSource.KNOWLEDGE, exact.error)
        return passages_from(rows), SourceFault(
            source=SearchSource.KNOWLEDGE, reason=reason, shortfall=Shortfall.APPROXIMATE
        )
    return passages_from(exact), None


def _read_passages(values: Mapping[str, Any]) -> Rows | FailedRead:
    read = Read(
        name=SearchSource.KNOWLEDGE.value,
        statement=passage_statement(),
        values=values,
        time_limit=source_time_limit(),
    )
    return read_together([read], setup=passage_queries.ITERATIVE_SCAN)[read.name]


def source_time_limit() -> timedelta:
    """Return the time that the read of one source may take."""
    return timedelta(milliseconds=settings.ARBOR_SEARCH_SOURCE_MS)


def log_source_failure(source: SearchSource, error: Exception) -> str:
    """Log the error of a source that was not read, and return the reason for prompts and people."""
    log.warning("search_source_failed", source=source.value, error=str(error))
    if isinstance(error, QueryCanceled) or isinstance(error.__cause__, QueryCanceled):
        return f"it took longer than {settings.ARBOR_SEARCH_SOURCE_MS} ms"
    return "it failed"


def passage_statement() -> str:
    """Return SEARCH_PASSAGES for the dimension of the installation's vectors, which its HNSW index requires."""
    return _statement(installation_model().dimension)


@cache
def _statement(dimension: int) -> str:
    return passage_queries.SEARCH_PASSAGES.format(dimension=dimension)


def passage_values(
    query: PassageQuery, vector: Sequence[float] | None, *, exact: int | None = None
) -> dict[str, Any]:
    """Return the values of `passage_statement` besides the tenant.

    A tenant of up to `exact` passages is scanned, a larger one searched by HNSW; None: ARBOR_SEARCH_EXACT_PASSAGES decides.
    """
    terms = dict.fromkeys(term.index for term in query_terms(query.text) if term.index)
    if exact is None:
        # Without a vector, HNSW finds nothing.
        exact = settings.ARBOR_SEARCH_EXACT_PASSAGES if vector is not None else ALWAYS_EXACT
    return {
        "agent": query.agent_id,
        "category": query.category,
        "terms": list(terms),
        "heaviest": SATURATION + 1,
        "vector": None if vector is None else halfvec_texts([half_precision(vector)])[0],
        "model": None if vector is None else name_of(installation_model()),
        "exact": exact,
        "limit": MAX_PASSAGES,
    }


def fell_short(rows: Sequence[tuple[Any, ...]], vector: Sequence[float] | None) -> bool:
    """Return whether HNSW was used and gave up before it had found enough passages."""
    passages, near = rows[0][:2]
    return vector is not None and passages > settings.ARBOR_SEARCH_EXACT_PASSAGES and near < MAX_PASSAGES


def passages_from(rows: Sequence[tuple[Any, ...]]) -> list[FoundPassage]:
    """Return the passages in the rows of `passage_statement`."""
    return [_passage(row[2:]) for row in rows if row[2] is not None]


def _passage(row: Sequence[Any]) -> FoundPassage:
    (passage_id, document_id, name, title, version, category, headings, page, start, end, *rest) = row
    text, digest, written_at, similarity, words = rest
    return FoundPassage(
        id=passage_id,
        document_id=document_id,
        name=name,
        title=title,
        version=version,
        category=category,
        place=place_of(headings=from_json(headings), page=page, start=start, end=end),
        text=text,
        content_hash=bytes(digest),
        written_at=written_at,
        similarity=similarity,
        words=words,
    )
