"""Pinned memories, memory quotas and promotion candidates."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from apps.api.authentication import READ
from apps.api.requests import access_of
from apps.api.routers.memories import Changed, require_own_memories
from apps.api.rows import Input
from apps.heartbeats.services.reports.promotion_candidates import MAX_SHOWN, promotion_candidates
from apps.memories.services.retention.archive import REASON_LENGTH
from apps.memories.services.retention.pins import pin, unpin
from apps.memories.services.retention.quotas import read_quotas
from arbor.memory.values import MemoryType

router = Router()


class PinChange(Input):
    """The memories to pin or unpin, and the reason for the audit log."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(max_length=REASON_LENGTH)] = ""


class QuotaResource(Schema):
    """An agent's memories of one type, compared with the quota."""

    type: MemoryType
    active: int
    quota: int = Field(description="Above it, maintenance archives the least important ones.")
    share: float = Field(description="The share of the quota that is used up.")
    archived: int
    permanent: int = Field(description="Active memories that no quota archives, the pinned ones included.")
    pinned: int
    unused_pins: int = Field(description="Pinned for a week or longer, and not recalled since.")


class QuotaList(Schema):
    """The memories of each type, compared with the quotas."""

    results: list[QuotaResource]


class CandidateResource(Schema):
    """A fact that consolidation may propose as a part of the self."""

    memory_id: UUID
    content: str
    trust: float = Field(description="0 to 1: the confidence in it.")
    relevance: float = Field(description="0 to 1: the importance, faded since the last recall.")
    recalled: int
    recalled_at: datetime | None
    age_days: float
    evidenced: bool = Field(description="Something else than the agent's own notes supports it.")
    proposal: str = Field(description="The status of the proposal made of it; empty: none was.")
    missing: list[str] = Field(description="The conditions that are not met yet.")


class CandidateList(Schema):
    """Promotion candidates, the nearest to a proposal first."""

    results: list[CandidateResource]


@router.post("/agents/{uuid:agent_id}/memories/pin", response=Changed, summary="Pin memories")
def pin_memories(request: HttpRequest, agent_id: UUID, change: PinChange) -> Changed:
    """Exempt memories from decay and forgetting, until they are unpinned."""
    require_own_memories(agent_id, change.ids)
    return Changed(changed=pin(memory_ids=change.ids, actor=access_of(request).actor, reason=change.reason))


@router.post("/agents/{uuid:agent_id}/memories/unpin", response=Changed, summary="Unpin memories")
def unpin_memories(request: HttpRequest, agent_id: UUID, change: PinChange) -> Changed:
    """Unpin memories: they get back their decay, retention and expiry."""
    require_own_memories(agent_id, change.ids)
    return Changed(changed=unpin(memory_ids=change.ids, actor=access_of(request).actor, reason=change.reason))


@router.get(
    "/agents/{uuid:agent_id}/memory-quotas", response=QuotaList, summary="Show memory quotas", auth=READ
)
def show_quotas(request: HttpRequest, agent_id: UUID) -> QuotaList:
    """Compare an agent's memories of each type with the quotas."""
    usages = read_quotas(agent_id=agent_id)
    return QuotaList(results=[QuotaResource.model_validate(usage) for usage in usages])


@router.get(
    "/agents/{uuid:agent_id}/promotion-candidates",
    response=CandidateList,
    summary="List promotion candidates",
    auth=READ,
)
def list_candidates(
    request: HttpRequest, agent_id: UUID, limit: Annotated[int, Field(ge=1, le=MAX_SHOWN)] = 50
) -> CandidateList:
    """List the facts that consolidation may propose as parts of the self, with the conditions that each does not meet yet."""
    found = promotion_candidates(agent_id=agent_id, limit=limit)
    return CandidateList(results=[CandidateResource.model_validate(fact) for fact in found])
