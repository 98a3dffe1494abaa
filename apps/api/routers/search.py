"""Searches: all that an agent may know, and documents alone."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from apps.agents.services.lookup import agent_by_id
from apps.api.authentication import READ
from apps.api.requests import access_of
from apps.api.rows import Input
from apps.api.scope import own_transactions
from apps.knowledge.services.passage_search import PassageQuery, search_passages
from apps.knowledge.services.search import MAX_FOUND, search_my_memories
from apps.tenants.scope import tenant_transaction
from arbor.knowledge.found_passages import MAX_PASSAGES
from arbor.knowledge.merging import SearchSource
from arbor.knowledge.search_terms import TERM_LENGTH
from arbor.knowledge.values import CATEGORY_LENGTH
from arbor.memory.recall.recall_request import QUERY_LENGTH

router = Router()

_Query = Annotated[str, Field(min_length=1, max_length=QUERY_LENGTH, examples=["Who approves flights?"])]


class SearchInput(Input):
    """A question to all sources of an agent."""

    query: _Query
    term: Annotated[
        str,
        Field(
            max_length=TERM_LENGTH,
            description="Text that messages of the audit log and outputs of workflows must contain; empty: derived from the query.",
        ),
    ] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_FOUND)] = 5


class SearchResultResource(Schema):
    """A result, with its score components."""

    source: SearchSource
    id: str
    content: str
    citation: str = Field(
        description="Its document with version and place, its workflow and step, or its act."
    )
    at: datetime
    score: float
    similarity: float
    recency: float
    importance: float
    source_priority: float


class SearchResource(Schema):
    """The results of all sources, best first."""

    term: str
    results: list[SearchResultResource]
    missing: list[str] = Field(description="Sources that were not searched, or only in part, and why.")
    forbidden: list[SearchSource] = Field(description="Sources that the agent may not read.")


class DocumentQuestion(Input):
    """A question to the published documents."""

    query: _Query
    category: Annotated[str | None, Field(max_length=CATEGORY_LENGTH)] = None
    agent_id: UUID | None = Field(None, description="Only what this agent finds.")
    limit: Annotated[int, Field(ge=1, le=MAX_PASSAGES)] = 10


class FoundPassageResource(Schema):
    """A passage with its citation."""

    id: UUID
    document_id: UUID
    name: str
    title: str
    version: int
    category: str
    place: str
    text: str
    similarity: float | None = Field(description="The cosine with the query; null: not compared.")
    words: float = Field(
        description="The score of the query's words, as a share of the highest possible one."
    )


class FoundPassageList(Schema):
    """The passages about a question, best first."""

    by_meaning: bool = Field(description="False: the embedder did not answer, and words alone decided.")
    results: list[FoundPassageResource]
    missing: list[str] = Field(description="What was not searched, or not exactly, and why.")


@router.post(
    "/agents/{uuid:agent_id}/search", response=SearchResource, auth=READ, summary="Search all sources"
)
@own_transactions
def search(request: HttpRequest, agent_id: UUID, question: SearchInput) -> SearchResource:
    """Search an agent's memories, documents, outputs of workflows and the audit log. Nothing counts as recalled."""
    found = search_my_memories(
        tenant_id=access_of(request).tenant_id,
        agent_id=agent_id,
        text=question.query,
        term=question.term,
        limit=question.limit,
    )
    return SearchResource(
        term=found.term,
        results=[SearchResultResource.model_validate(result) for result in found.results],
        missing=found.notes,
        forbidden=list(found.forbidden),
    )


@router.post("/documents/search", response=FoundPassageList, auth=READ, summary="Search documents")
@own_transactions
def search_documents(request: HttpRequest, question: DocumentQuestion) -> FoundPassageList:
    """Search the published documents by meaning and words."""
    tenant_id = access_of(request).tenant_id
    if question.agent_id is not None:
        with tenant_transaction(tenant_id):
            agent_by_id(question.agent_id)
    found = search_passages(
        tenant_id=tenant_id,
        query=PassageQuery(
            text=question.query,
            agent_id=question.agent_id,
            category=question.category,
            limit=question.limit,
        ),
    )
    return FoundPassageList(
        by_meaning=found.by_meaning,
        results=[FoundPassageResource.model_validate(passage) for passage in found.passages],
        missing=found.notes,
    )
