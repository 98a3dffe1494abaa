"""Episodes, clusters and the working memory of an agent."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models.functions import Now
from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from apps.agents.models import AgentState
from apps.api.paging import ListPage, Paging, page_of
from apps.api.rows import own_row, rows_of
from apps.memories.models import BufferItem, Cluster, CodeSnippet, Concept, Episode
from apps.memories.services.clusters.clusters import cluster_members
from apps.memories.services.jobs.episodes import episode_memories
from arbor.errors import NotFound
from arbor.heartbeat.working_memory import WorkingMemory

router = Router()

#: The most memories of an episode or a cluster that are shown.
_MEMORIES_SHOWN = 200


class EpisodeResource(Schema):
    """An episode: a time segment of memories."""

    id: UUID
    session: str
    started_at: datetime
    last_at: datetime
    ended_at: datetime | None = Field(description="Null: it is open.")
    size: int
    summary: str
    summarized_by: str


class EpisodeMemory(Schema):
    """A memory of an episode."""

    id: UUID
    sequence: int
    role: str
    content: str
    occurred_at: datetime


class EpisodeDetails(EpisodeResource):
    """An episode with its first memories, in order."""

    memories: list[EpisodeMemory]


class ClusterResource(Schema):
    """A cluster of an agent's memories."""

    id: UUID
    name: str
    keywords: list[str]
    size: int
    importance: float
    emotional_valence: float


class ClusterMemory(Schema):
    """A memory of a cluster."""

    memory_id: UUID
    content: str
    strength: float


class ClusterDetails(ClusterResource):
    """A cluster with the memories that fit it best."""

    memories: list[ClusterMemory]


class ConceptResource(Schema):
    """An abstract idea that memories are cases of."""

    id: UUID
    name: str
    description: str


class BufferResource(Schema):
    """A buffer item: something that an agent has not decided to remember."""

    id: UUID
    content: str
    importance: float
    source: str
    expires_at: datetime
    created_at: datetime


class SnippetResource(Schema):
    """A code snippet of a conversation or message."""

    id: UUID
    language: str
    title: str
    code: str
    source: str
    created_at: datetime


class WorkingMemoryResource(Schema):
    """An agent's working memory."""

    working_memory: dict[str, Any]


@router.get("/agents/{uuid:agent_id}/episodes", response=ListPage[EpisodeResource], summary="List episodes")
def list_episodes(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[EpisodeResource]:
    """List an agent's episodes, the latest first."""
    rows = rows_of(Episode, agent_id).defer("embedding", "lexical")
    return page_of(rows, page, order="-started_at", to_resource=EpisodeResource.model_validate)


@router.get(
    "/agents/{uuid:agent_id}/episodes/{uuid:episode_id}", response=EpisodeDetails, summary="Show an episode"
)
def show_episode(request: HttpRequest, agent_id: UUID, episode_id: UUID) -> EpisodeDetails:
    """Show an episode with its summary and its first memories."""
    episode = own_row(Episode, agent_id=agent_id, row_id=episode_id)
    members = episode_memories(episode_id=episode_id, limit=_MEMORIES_SHOWN)
    return EpisodeDetails(
        **EpisodeResource.model_validate(episode).model_dump(),
        memories=[EpisodeMemory.model_validate(member) for member in members],
    )


@router.get("/agents/{uuid:agent_id}/clusters", response=ListPage[ClusterResource], summary="List clusters")
def list_clusters(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[ClusterResource]:
    """List the clusters of an agent's memories, the most important first."""
    rows = rows_of(Cluster, agent_id).defer("centroid")
    return page_of(rows, page, order="-importance", to_resource=ClusterResource.model_validate)


@router.get(
    "/agents/{uuid:agent_id}/clusters/{uuid:cluster_id}", response=ClusterDetails, summary="Show a cluster"
)
def show_cluster(request: HttpRequest, agent_id: UUID, cluster_id: UUID) -> ClusterDetails:
    """Show a cluster with the memories that fit it best."""
    cluster = own_row(Cluster, agent_id=agent_id, row_id=cluster_id)
    members = cluster_members(cluster_id=cluster_id, limit=_MEMORIES_SHOWN)
    return ClusterDetails(
        **ClusterResource.model_validate(cluster).model_dump(),
        memories=[ClusterMemory.model_validate(member) for member in members],
    )


@router.get("/agents/{uuid:agent_id}/concepts", response=ListPage[ConceptResource], summary="List concepts")
def list_concepts(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[ConceptResource]:
    """List an agent's concepts by name."""
    return page_of(rows_of(Concept, agent_id), page, order="name", to_resource=ConceptResource.model_validate)


@router.get("/agents/{uuid:agent_id}/buffer", response=ListPage[BufferResource], summary="List the buffer")
def list_buffer(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[BufferResource]:
    """List an agent's buffer items, the latest first."""
    rows = rows_of(BufferItem, agent_id).filter(expires_at__gt=Now(), promoted_to__isnull=True)
    rows = rows.defer("embedding", "lexical")
    return page_of(rows, page, order="-created_at", to_resource=BufferResource.model_validate)


@router.get("/agents/{uuid:agent_id}/code", response=ListPage[SnippetResource], summary="List code snippets")
def list_code(request: HttpRequest, agent_id: UUID, page: Paging) -> ListPage[SnippetResource]:
    """List an agent's code snippets, the latest first."""
    rows = rows_of(CodeSnippet, agent_id)
    return page_of(rows, page, order="-created_at", to_resource=SnippetResource.model_validate)


@router.get(
    "/agents/{uuid:agent_id}/working-memory",
    response=WorkingMemoryResource,
    summary="Show the working memory",
)
def show_working_memory(request: HttpRequest, agent_id: UUID) -> WorkingMemoryResource:
    """Show an agent's working memory: its conversation partner, goals, thoughts, concerns and questions."""
    state = AgentState.objects.filter(agent_id=agent_id).first()
    if state is None:
        raise NotFound(f"there is no agent {agent_id} in this tenant")
    memory = WorkingMemory.model_validate(state.working_memory)
    return WorkingMemoryResource(working_memory=memory.model_dump(mode="json"))
