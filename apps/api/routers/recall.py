"""Recall memories with the score components of each, and explain why a memory is not among them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import BaseModel, Field

from apps.api.authentication import READ
from apps.api.requests import access_of
from apps.api.rows import Input, own_row
from apps.api.scope import own_transactions
from apps.api.times import Moment
from apps.memories.models import Memory
from apps.memories.services.recall.explanation import explain_recall
from apps.memories.services.recall.recaller import recall
from apps.memories.services.recall.search import search_similar_memories
from arbor.memory.recall.recall_request import QUERY_LENGTH, RecallFilter, RecallRequest
from arbor.memory.values import SESSION_LENGTH, MemoryType, ScoreComponents

router = Router()

_Share = Annotated[float, Field(ge=0, le=1)]


class RecallInput(Input):
    """A question to an agent's memory."""

    query: Annotated[
        str, Field(min_length=1, max_length=QUERY_LENGTH, examples=["when does the harbour open"])
    ]
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    types: Annotated[list[MemoryType], Field(max_length=4)] = []
    since: Moment | None = None
    until: Moment | None = None
    session: Annotated[str, Field(max_length=SESSION_LENGTH)] = ""
    min_importance: _Share = 0.0
    min_trust: _Share = 0.0


# `BaseModel`, because the reading of attributes by `Schema` would cost a tenth of a recall.
class RecalledResource(BaseModel):
    """A recalled memory, with its score components."""

    id: UUID
    score: float
    components: dict[str, float] = Field(examples=[{"meaning": 0.31, "words": 0.42}])
    type: MemoryType
    role: str
    content: str
    session: str
    occurred_at: datetime
    importance: float
    trust: float


class RecallResource(BaseModel):
    """The memories that a question recalls, best first."""

    results: list[RecalledResource]


class WhyResource(Schema):
    """Why a question recalls a memory, or does not."""

    memory_id: UUID
    recalled: bool
    reasons: list[str] = Field(examples=[["it has neither the words nor the meaning of the query"]])
    components: dict[str, float] | None = Field(
        description="The score components of the memory; null: it has none."
    )
    compared: bool = Field(description="False: meanings were not compared, words alone decided.")


class SimilarResource(Schema):
    """A memory that is near to a text by meaning alone."""

    id: UUID
    similarity: float
    type: MemoryType
    role: str
    content: str
    session: str
    occurred_at: datetime


class SimilarList(Schema):
    """The nearest memories, the nearest first."""

    results: list[SimilarResource]


@router.post("/agents/{uuid:agent_id}/recall", response=RecallResource, auth=READ, summary="Recall")
@own_transactions
def recall_memories(request: HttpRequest, agent_id: UUID, question: RecallInput) -> RecallResource:
    """Recall memories about a question, with the score components of each. A program's recall changes nothing."""
    access = access_of(request)
    found = recall(
        tenant_id=access.tenant_id,
        request=_request_of(agent_id, question),
    )
    return RecallResource(
        results=[
            RecalledResource(
                id=memory.id,
                score=round(memory.score, 4),
                components=_rounded(memory.components),
                type=memory.type,
                role=memory.role,
                content=memory.content,
                session=memory.session,
                occurred_at=memory.occurred_at,
                importance=memory.importance,
                trust=memory.trust,
            )
            for memory in found
        ]
    )


@router.post(
    "/agents/{uuid:agent_id}/memories/{uuid:memory_id}/why",
    response=WhyResource,
    auth=READ,
    summary="Explain a recall",
)
def explain(request: HttpRequest, agent_id: UUID, memory_id: UUID, question: RecallInput) -> WhyResource:
    """Explain why a question recalls a memory or does not, with its score components. Nothing changes."""
    own_row(Memory, agent_id=agent_id, row_id=memory_id)
    explanation = explain_recall(
        tenant_id=access_of(request).tenant_id, request=_request_of(agent_id, question), absent=memory_id
    )
    assert explanation.absence is not None
    components = explanation.absence.components
    return WhyResource(
        memory_id=memory_id,
        recalled=any(memory.id == memory_id for memory in explanation.recalled),
        reasons=list(explanation.absence.reasons),
        components=None if components is None else _rounded(components),
        compared=explanation.compared,
    )


def _request_of(agent_id: UUID, question: RecallInput) -> RecallRequest:
    return RecallRequest(
        agent_id=agent_id,
        text=question.query,
        limit=question.limit,
        only=RecallFilter(
            types=frozenset(question.types),
            since=question.since,
            until=question.until,
            session=question.session,
            min_importance=question.min_importance,
            min_trust=question.min_trust,
        ),
    )


def _rounded(components: ScoreComponents) -> dict[str, float]:
    # A scan has numbers of numpy, which the JSON encoder refuses.
    return {name: round(float(value), 4) for name, value in components.as_dict().items()}


@router.get("/agents/{uuid:agent_id}/similar-memories", response=SimilarList, summary="List similar memories")
@own_transactions
def list_similar(
    request: HttpRequest,
    agent_id: UUID,
    text: Annotated[str, Field(min_length=1, max_length=QUERY_LENGTH)],
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
) -> SimilarList:
    """List the memories nearest to a text by meaning alone: words, time and importance do not count."""
    access = access_of(request)
    found = search_similar_memories(tenant_id=access.tenant_id, agent_id=agent_id, text=text, limit=limit)
    return SimilarList(results=[SimilarResource.model_validate(memory) for memory in found])
