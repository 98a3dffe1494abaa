"""The mind of an agent beside its memories: episodes, clusters, concepts, thoughts, the buffer and working memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, Rows, get, listed, rows_of, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A time segment of memories."""

    id: UUID
    session: str
    started_at: datetime
    last_at: datetime
    #: None: it is open.
    ended_at: datetime | None
    size: int
    summary: str
    summarized_by: str


@dataclass(frozen=True, kw_only=True)
class EpisodeMemory:
    """A memory of an episode."""

    id: UUID
    sequence: int
    role: str
    content: str
    occurred_at: datetime


@dataclass(frozen=True, kw_only=True)
class EpisodeDetails(Episode):
    """An episode with its first memories, in order."""

    memories: list[EpisodeMemory]


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A cluster of an agent's memories."""

    id: UUID
    name: str
    keywords: list[str]
    size: int
    importance: float
    #: -1 to 1.
    emotional_valence: float


@dataclass(frozen=True, kw_only=True)
class ClusterMemory:
    """A memory of a cluster."""

    memory_id: UUID
    content: str
    strength: float


@dataclass(frozen=True, kw_only=True)
class ClusterDetails(Cluster):
    """A cluster with the memories that fit it best."""

    memories: list[ClusterMemory]


@dataclass(frozen=True, kw_only=True)
class Concept:
    """An abstract idea that memories are cases of."""

    id: UUID
    name: str
    description: str


@dataclass(frozen=True, kw_only=True)
class BufferItem:
    """A text that an agent has until it expires, without a decision to remember it."""

    id: UUID
    content: str
    source: str
    importance: float
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """A code snippet of a conversation or message."""

    id: UUID
    title: str
    language: str
    code: str
    source: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Thought:
    """A thought of a heartbeat or a conversation."""

    id: UUID
    origin: str
    text: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class WorkingMemory:
    """An agent's working memory: its conversation partner, goals, thoughts, concerns and questions."""

    working_memory: dict[str, Any]


class Episodes[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about episodes."""

    @listing
    def list(self, agent_id: Id) -> PagedCall[Episode]:
        """List an agent's episodes, the latest first."""
        return listed(Episode, f"/agents/{segment(agent_id)}/episodes")

    @operation
    def get(self, agent_id: Id, episode_id: Id) -> Call[EpisodeDetails]:
        """Return an episode with its summary and its first memories."""
        return get(EpisodeDetails, f"/agents/{segment(agent_id)}/episodes/{segment(episode_id)}")


class Clusters[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about clusters."""

    @listing
    def list(self, agent_id: Id) -> PagedCall[Cluster]:
        """List the clusters of an agent's memories, the most important first."""
        return listed(Cluster, f"/agents/{segment(agent_id)}/clusters")

    @operation
    def get(self, agent_id: Id, cluster_id: Id) -> Call[ClusterDetails]:
        """Return a cluster with the memories that fit it best."""
        return get(ClusterDetails, f"/agents/{segment(agent_id)}/clusters/{segment(cluster_id)}")


class Minds[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about concepts, thoughts, the buffer, code and working memory."""

    @operation
    def working_memory(self, agent_id: Id) -> Call[WorkingMemory]:
        """Return an agent's working memory."""
        return get(WorkingMemory, f"/agents/{segment(agent_id)}/working-memory")

    @operation
    def thoughts(self, agent_id: Id, *, limit: int = 20) -> Call[Rows[Thought]]:
        """Return an agent's latest thoughts in heartbeats and conversations, the latest first."""
        return rows_of(get(Thought, f"/agents/{segment(agent_id)}/thoughts", limit=limit))

    @listing
    def concepts(self, agent_id: Id) -> PagedCall[Concept]:
        """List an agent's concepts by name."""
        return listed(Concept, f"/agents/{segment(agent_id)}/concepts")

    @listing
    def buffer(self, agent_id: Id) -> PagedCall[BufferItem]:
        """List an agent's buffer items, the latest first."""
        return listed(BufferItem, f"/agents/{segment(agent_id)}/buffer")

    @listing
    def code(self, agent_id: Id) -> PagedCall[Snippet]:
        """List an agent's code snippets, the latest first."""
        return listed(Snippet, f"/agents/{segment(agent_id)}/code")
