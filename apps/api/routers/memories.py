"""Add, list, show, archive, restore and purge memories."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Query, Router, Schema, Status
from pydantic import Field

from apps.api.authentication import ADMINISTER, READ
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, own_row, rows_of
from apps.api.scope import own_transactions
from apps.api.times import Moment
from apps.fleet.seeds.purging import purge_memories as purge
from apps.memories.models import Memory, MemoryAccess, Pin, Upkeep
from apps.memories.services.retention.archive import REASON_LENGTH, archive, restore
from apps.memories.services.store.create import teach_agent
from arbor.memory.content import MAX_CONTENT_BYTES
from arbor.memory.forgetting import days_between, relevance
from arbor.memory.values import SESSION_LENGTH, MemoryStatus, MemoryType, NewMemory

router = Router()

#: The source of memories that a program adds.
SOURCE = "api"
_Share = Annotated[float, Field(ge=0, le=1)]


class MemoryResource(Schema):
    """A memory."""

    id: UUID
    type: MemoryType
    status: MemoryStatus
    content: str
    role: str = Field(description="Who said it; empty: nobody.")
    session: str
    source: str
    importance: float = Field(description="0 to 1.")
    trust: float = Field(description="0 to 1.")
    emotional_valence: float = Field(description="-1 to 1.")
    occurred_at: datetime
    created_at: datetime
    expires_at: datetime | None


class NeighborResource(Schema):
    """A memory that is associated with another one."""

    id: UUID
    weight: float


class MemoryDetails(MemoryResource):
    """A memory with all that is known about it."""

    detail: Any = Field(description="The parts of its type.")
    recalled: int = Field(description="Times that a heartbeat or a conversation recalled it.")
    recalled_at: datetime | None
    episode_id: UUID | None
    embedding_model: str = Field(
        description="The model of its vector. Empty: no vector yet. `refused: MODEL`: that model refused the text. Without a vector, words alone find the memory."
    )
    decay_rate: float = Field(description="Per day; 0 while it is pinned.")
    relevance: float = Field(description="0 to 1: the importance, faded since the last recall.")
    pinned_at: datetime | None = Field(description="Null: it is not pinned.")
    neighbors: list[NeighborResource]


class NewMemoryInput(Input):
    """A text to remember."""

    text: Annotated[
        str, Field(min_length=1, max_length=MAX_CONTENT_BYTES, examples=["The harbour opens at six."])
    ]
    type: MemoryType = MemoryType.SEMANTIC
    importance: _Share | None = Field(default=None, description="Null: by the rules.")
    expires_at: Moment | None = Field(default=None, description="Null: as its kind lasts.")


class RememberedResource(Schema):
    """A memory that was added, or that was known already."""

    id: UUID
    new: bool = Field(description="False: the agent knew that already, and the memory is reinforced.")


class MemoryChange(Input):
    """The memories to change, and the reason for the audit log."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(min_length=1, max_length=REASON_LENGTH)]


class MemoryRestore(MemoryChange):
    """The memories to restore."""

    for_good: Annotated[
        bool, Field(description="Make them permanent, so that they are not forgotten again.")
    ] = False


class Changed(Schema):
    """The number of changed rows."""

    changed: int


class Purged(Changed):
    """The number of purged memories."""

    saved_seeds: list[UUID] = Field(
        description="The saved seeds that still contain the memories; delete them where the texts must go."
    )


class MemoryQuery(Schema):
    """The memories that are wanted."""

    type: MemoryType | None = None
    status: MemoryStatus | None = MemoryStatus.ACTIVE
    session: Annotated[str, Field(max_length=SESSION_LENGTH)] = ""
    min_importance: _Share = 0.0
    pinned: bool = Field(default=False, description="True: only pinned memories.")


@router.get(
    "/agents/{uuid:agent_id}/memories", response=ListPage[MemoryResource], summary="List memories", auth=READ
)
def list_memories(
    request: HttpRequest, agent_id: UUID, page: Paging, wanted: Query[MemoryQuery]
) -> ListPage[MemoryResource]:
    """List an agent's memories, the latest first. Listing changes nothing."""
    rows = rows_of(Memory, agent_id, type=wanted.type, status=wanted.status)
    rows = rows.filter(importance__gte=wanted.min_importance)
    if wanted.session:
        rows = rows.filter(session=wanted.session).exclude(session="")
    if wanted.pinned:
        rows = rows.filter(pin__isnull=False)
    return page_of(
        rows.defer("embedding", "lexical"),
        page,
        order="-occurred_at",
        to_resource=MemoryResource.model_validate,
    )


@router.post("/agents/{uuid:agent_id}/memories", response={201: RememberedResource}, summary="Remember")
@own_transactions
def remember(request: HttpRequest, agent_id: UUID, memory: NewMemoryInput) -> Status[RememberedResource]:
    """Add a memory to an agent. The same text twice is one memory."""
    access = access_of(request)
    stored = teach_agent(
        tenant_id=access.tenant_id,
        agent_id=agent_id,
        memory=NewMemory(
            content=memory.text,
            type=memory.type,
            importance=memory.importance,
            occurred_at=datetime.now(UTC),
            expires_at=memory.expires_at,
            source=SOURCE,
        ),
        actor=access.actor,
    )
    return Status(201, RememberedResource(id=stored.ids[0], new=bool(stored.stored)))


@router.get(
    "/agents/{uuid:agent_id}/memories/{uuid:memory_id}", response=MemoryDetails, summary="Show a memory"
)
def show(request: HttpRequest, agent_id: UUID, memory_id: UUID) -> MemoryDetails:
    """Show a memory with its details, use and neighborhood."""
    memory = own_row(Memory, agent_id=agent_id, row_id=memory_id)
    access = MemoryAccess.objects.filter(memory_id=memory_id).first()
    recalled_at = access.last_at if access else None
    neighbors = Upkeep.objects.filter(memory_id=memory_id).values_list("neighbors", flat=True).first() or {}
    return MemoryDetails(
        **MemoryResource.model_validate(memory).model_dump(),
        detail=memory.detail,
        recalled=access.count if access else 0,
        recalled_at=recalled_at,
        episode_id=memory.episode_id,
        embedding_model=memory.embedding_model,
        decay_rate=memory.decay_rate,
        relevance=relevance(
            importance=memory.importance,
            decay_rate=memory.decay_rate,
            days_since_access=days_between(recalled_at or memory.occurred_at, datetime.now(UTC)),
        ),
        pinned_at=Pin.objects.filter(memory_id=memory_id).values_list("pinned_at", flat=True).first(),
        neighbors=[NeighborResource(id=UUID(other), weight=weight) for other, weight in neighbors.items()],
    )


@router.post("/agents/{uuid:agent_id}/memories/archive", response=Changed, summary="Archive memories")
def archive_memories(request: HttpRequest, agent_id: UUID, change: MemoryChange) -> Changed:
    """Exclude memories from recall. Nothing is lost."""
    require_own_memories(agent_id, change.ids)
    done = archive(memory_ids=change.ids, reason=change.reason, actor=access_of(request).actor)
    return Changed(changed=done)


@router.post("/agents/{uuid:agent_id}/memories/restore", response=Changed, summary="Restore memories")
def restore_memories(request: HttpRequest, agent_id: UUID, change: MemoryRestore) -> Changed:
    """Include archived memories in recall again."""
    require_own_memories(agent_id, change.ids)
    done = restore(
        memory_ids=change.ids,
        reason=change.reason,
        actor=access_of(request).actor,
        for_good=change.for_good,
    )
    return Changed(changed=done)


@router.post(
    "/agents/{uuid:agent_id}/memories/purge", response=Purged, auth=ADMINISTER, summary="Purge memories"
)
def purge_memories(request: HttpRequest, agent_id: UUID, change: MemoryChange) -> Purged:
    """Delete archived memories with all that depends on them, for good."""
    require_own_memories(agent_id, change.ids)
    report = purge(memory_ids=change.ids, reason=change.reason, actor=access_of(request).actor)
    return Purged(changed=report.purged, saved_seeds=list(report.saved_seeds))


def require_own_memories(agent_id: UUID, memory_ids: list[UUID]) -> None:
    """Raise NotFound unless all memories are the agent's."""
    own = set(rows_of(Memory, agent_id).filter(id__in=memory_ids).values_list("id", flat=True))
    for memory_id in memory_ids:
        if memory_id not in own:
            own_row(Memory, agent_id=agent_id, row_id=memory_id)
