"""Searches: all that an agent may know, and documents alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import Call, Id, post, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """A result, with its score components."""

    #: agent_memory, audit_log, workflow_steps or kb.
    source: str
    id: str
    content: str
    #: Its document with version and place, its workflow and step, or its act.
    citation: str
    at: datetime
    score: float
    similarity: float
    recency: float
    importance: float
    source_priority: float


@dataclass(frozen=True, kw_only=True)
class SearchAnswer:
    """The results of all sources, best first."""

    #: What the audit log and workflows were searched for.
    term: str
    results: list[SearchResult]
    #: Sources that were not searched, or only in part, and why.
    missing: list[str]
    #: Sources that the agent may not read.
    forbidden: list[str]


@dataclass(frozen=True, kw_only=True)
class FoundPassage:
    """A passage of a document with its citation."""

    id: UUID
    document_id: UUID
    name: str
    title: str
    version: int
    category: str
    place: str
    text: str
    #: The cosine with the query; None: not compared.
    similarity: float | None
    words: float


@dataclass(frozen=True, kw_only=True)
class FoundPassages:
    """The passages about a question, best first."""

    #: False: the embedder did not answer, and words alone decided.
    by_meaning: bool
    results: list[FoundPassage]
    #: What was not searched, or not exactly, and why.
    missing: list[str]


class Search[C: (Arbor, AsyncArbor)](Group[C]):
    """Searches."""

    @operation
    def all_sources(self, agent_id: Id, query: str, *, term: str = "", limit: int = 5) -> Call[SearchAnswer]:
        """Search an agent's memories, documents, outputs of workflows and the audit log; nothing counts as recalled."""
        return post(
            SearchAnswer,
            f"/agents/{segment(agent_id)}/search",
            {"query": query, "term": term, "limit": limit},
        )

    @operation
    def documents(
        self, query: str, *, category: str | None = None, agent_id: Id | None = None, limit: int = 10
    ) -> Call[FoundPassages]:
        """Search the published documents, or only the ones that an agent finds."""
        body = {"query": query, "category": category, "agent_id": agent_id, "limit": limit}
        return post(FoundPassages, "/documents/search", body)
