"""The four sources of a search (seed 001): a read of each, and its rows as results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from apps.audit.services.search import events_with
from apps.knowledge.services.passage_search import (
    ALWAYS_EXACT,
    PassageQuery,
    fell_short,
    min_similarity,
    passage_statement,
    passage_values,
    passages_from,
    source_time_limit,
)
from apps.memories.services.embedding.minds import query_vector
from apps.memories.services.recall.queries import MEMORIES_BY_COSINE
from apps.tenants.round_trip import Read
from apps.tenants.scope import APP
from apps.workflows.services.search import found_steps, steps_with
from arbor.embedding.models import EmbeddingModel
from arbor.knowledge.found_passages import FoundPassage, fuse
from arbor.knowledge.merging import SearchSource, SourceResult, min_similarity_of, word_share
from arbor.memory.recall.recall_request import check_query_text

#: Results of each source (seed 001).
_MEMORIES = 10
_ACTS = 10
_STEPS = 5
_PASSAGES = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceQuery:
    """A query for an agent's sources. Raises Invalid for a text that is empty or too long."""

    agent_id: UUID
    text: str
    #: The text that audit messages and outputs of workflows must contain; empty: those sources are not searched.
    term: str
    now: datetime
    #: The text's vector by the agent's embedder, and that embedder; no vector: the embedder did not answer.
    vector: Sequence[float] | None
    model: EmbeddingModel | None
    #: The text's vector by the installation's embedder; None: the embedder did not answer.
    passage_vector: Sequence[float] | None

    def __post_init__(self) -> None:
        check_query_text(self.text)


class NotComparable(Exception):
    """The agent's memories were moved to another embedder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRead:
    """The read of one source, and the function that makes results of its rows."""

    read: Read
    #: Raises NotComparable.
    results: Callable[[list[tuple[Any, ...]]], list[SourceResult]]
    #: Returns, given the rows of the read, an exact read that replaces it if they are too few; otherwise None.
    exact_read: Callable[[list[tuple[Any, ...]]], Read | None] = lambda _: None


def read_of(source: SearchSource, query: SourceQuery) -> SourceRead:
    """Return the read of a source."""
    return _READS[source](query)


def _memories(query: SourceQuery) -> SourceRead:
    name = query.model.name if query.model else settings.ARBOR_EMBEDDING_MODEL
    least = min_similarity_of(name, chosen=settings.ARBOR_SEARCH_MIN_SIMILARITY)

    def results(rows: list[tuple[Any, ...]]) -> list[SourceResult]:
        if not rows[0][0]:
            raise NotComparable
        return [
            SourceResult(
                source=SearchSource.MEMORY,
                id=str(memory_id),
                content=content,
                at=at,
                similarity=similarity,
                importance=importance,
            )
            for _, memory_id, content, importance, at, similarity in rows
            if memory_id is not None and similarity >= least
        ]

    values = {
        "agent": query.agent_id,
        "now": query.now,
        "limit": _MEMORIES,
        **query_vector(query.vector, query.model),
    }
    return SourceRead(read=_read(SearchSource.MEMORY, MEMORIES_BY_COSINE, values), results=results)


def _acts(query: SourceQuery) -> SourceRead:
    def results(rows: list[tuple[Any, ...]]) -> list[SourceResult]:
        return [
            SourceResult(
                source=SearchSource.AUDIT,
                id=str(event_id),
                content=message,
                citation=f"audit log, {action} by {actor}",
                at=at,
                similarity=word_share(query.text, message),
            )
            for event_id, action, message, actor, at in rows
        ]

    rows = events_with(query.term).values_list("id", "action", "message", "actor", "at")[:_ACTS]
    return SourceRead(read=_compiled(SearchSource.AUDIT, rows), results=results)


def _steps(query: SourceQuery) -> SourceRead:
    def results(rows: list[tuple[Any, ...]]) -> list[SourceResult]:
        return [
            SourceResult(
                source=SearchSource.WORKFLOW,
                id=str(step.step_id),
                content=step.output,
                citation=f"workflow {step.workflow}, step {step.step}, run {step.run_id}",
                at=step.completed_at,
                similarity=word_share(query.text, step.output),
            )
            for step in found_steps(rows)
        ]

    return SourceRead(read=_compiled(SearchSource.WORKFLOW, steps_with(query.term)[:_STEPS]), results=results)


def _passages(query: SourceQuery) -> SourceRead:
    def results(rows: list[tuple[Any, ...]]) -> list[SourceResult]:
        found = fuse(passages_from(rows), limit=_PASSAGES, min_similarity=min_similarity())
        return [passage_result(passage) for passage in found]

    passage_query = PassageQuery(text=query.text, agent_id=query.agent_id)

    def read(exact: int | None = None) -> Read:
        values = passage_values(passage_query, query.passage_vector, exact=exact)
        return _read(SearchSource.KNOWLEDGE, passage_statement(), values)

    def exact_read(rows: list[tuple[Any, ...]]) -> Read | None:
        return read(ALWAYS_EXACT) if fell_short(rows, query.passage_vector) else None

    return SourceRead(read=read(), results=results, exact_read=exact_read)


def passage_result(passage: FoundPassage) -> SourceResult:
    """Return a passage as a result; for a passage without a similarity of vectors, the score of its words counts as similarity."""
    return SourceResult(
        source=SearchSource.KNOWLEDGE,
        id=str(passage.id),
        content=passage.text,
        citation=passage.citation,
        at=passage.written_at,
        similarity=passage.words if passage.similarity is None else passage.similarity,
        score=passage.score,
    )


def _read(source: SearchSource, statement: str, values: Any) -> Read:
    return Read(name=source.value, statement=statement, values=values, time_limit=source_time_limit())


def _compiled(source: SearchSource, rows: QuerySet[Any, Any]) -> Read:
    statement, values = rows.query.get_compiler(using=APP).as_sql()
    return _read(source, statement, values)


_READS: dict[SearchSource, Callable[[SourceQuery], SourceRead]] = {
    SearchSource.MEMORY: _memories,
    SearchSource.AUDIT: _acts,
    SearchSource.WORKFLOW: _steps,
    SearchSource.KNOWLEDGE: _passages,
}
