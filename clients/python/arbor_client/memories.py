"""Memories of an agent: add, recall, list, pin and archive them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, Rows, get, listed, post, rows_of, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A memory."""

    id: UUID
    #: episodic, semantic, procedural or strategic.
    type: str
    #: active or archived.
    status: str
    content: str
    #: The speaker; empty: nobody said it.
    role: str
    session: str
    source: str
    importance: float
    trust: float
    #: -1 to 1.
    emotional_valence: float
    occurred_at: datetime
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Neighbor:
    """A memory that is associated with another one."""

    id: UUID
    weight: float


@dataclass(frozen=True, kw_only=True)
class MemoryDetails(Memory):
    """A memory with all that is known about it."""

    #: The parts of its type.
    detail: Any
    #: The number of times that a heartbeat or a conversation recalled it.
    recalled: int
    recalled_at: datetime | None
    episode_id: UUID | None
    #: Per day; 0 while it is pinned.
    decay_rate: float
    #: 0 to 1: the importance, faded since the last recall.
    relevance: float
    #: None: it is not pinned.
    pinned_at: datetime | None
    #: The model of its vector; empty: it has none yet, `refused: MODEL`: the model refused it, and words alone find it.
    embedding_model: str
    neighbors: list[Neighbor]


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """A memory that was added, or that was known already."""

    id: UUID
    new: bool


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """A recalled memory, with its score components."""

    id: UUID
    score: float
    components: dict[str, float]
    type: str
    role: str
    content: str
    session: str
    occurred_at: datetime
    importance: float
    trust: float


@dataclass(frozen=True, kw_only=True)
class Recall:
    """The memories about a query, the best first."""

    results: list[Recalled]


@dataclass(frozen=True, kw_only=True)
class RecallReason:
    """Why a question recalls a memory, or does not."""

    memory_id: UUID
    recalled: bool
    reasons: list[str]
    #: The score components of the memory; None: it has none.
    components: dict[str, float] | None
    #: False: meanings were not compared, words alone decided.
    compared: bool


@dataclass(frozen=True, kw_only=True)
class SimilarMemory:
    """A memory that is near to a text by meaning alone."""

    id: UUID
    similarity: float
    type: str
    role: str
    content: str
    session: str
    occurred_at: datetime


@dataclass(frozen=True, kw_only=True)
class Changed:
    """The number of changed rows."""

    changed: int


@dataclass(frozen=True, kw_only=True)
class Purged:
    """The number of purged memories, and the saved seeds that still contain them."""

    changed: int
    saved_seeds: list[UUID]


@dataclass(frozen=True, kw_only=True)
class MemoryQuota:
    """An agent's memories of one type, compared with the quota."""

    type: str
    active: int
    #: Above it, maintenance archives the least important ones.
    quota: int
    #: The share of the quota that is used up.
    share: float
    archived: int
    #: Active memories that no quota archives, the pinned ones included.
    permanent: int
    pinned: int
    #: Pinned for a week or longer, and not recalled since.
    unused_pins: int


@dataclass(frozen=True, kw_only=True)
class PromotionCandidate:
    """A fact that may be proposed as a part of the self."""

    memory_id: UUID
    content: str
    #: 0 to 1: the confidence in it.
    trust: float
    #: 0 to 1: the importance, faded since the last recall.
    relevance: float
    recalled: int
    recalled_at: datetime | None
    age_days: float
    #: Something else than the agent's own notes supports it.
    evidenced: bool
    #: The status of the proposal that it became; empty: it became none.
    proposal: str
    #: The conditions that are not met yet.
    missing: list[str]


class Memories[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about memories."""

    @operation
    def remember(
        self,
        agent_id: Id,
        text: str,
        *,
        type: str = "semantic",  # noqa: A002 (the name in the API)
        importance: float | None = None,
        expires_at: datetime | None = None,
    ) -> Call[Remembered]:
        """Add a memory; the same text twice is one memory."""
        body = {"text": text, "type": type, "importance": importance, "expires_at": expires_at}
        return post(Remembered, f"/agents/{segment(agent_id)}/memories", body)

    @operation
    def recall(
        self,
        agent_id: Id,
        query: str,
        *,
        limit: int = 10,
        session: str = "",
        types: Iterable[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        min_importance: float = 0.0,
        min_trust: float = 0.0,
    ) -> Call[Recall]:
        """Recall memories about a query; a program's recall changes nothing."""
        body = _recall_body(query, limit, session, types, since, until, min_importance, min_trust)
        return post(Recall, f"/agents/{segment(agent_id)}/recall", body)

    @operation
    def why(
        self,
        agent_id: Id,
        memory_id: Id,
        query: str,
        *,
        limit: int = 10,
        session: str = "",
        types: Iterable[str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        min_importance: float = 0.0,
        min_trust: float = 0.0,
    ) -> Call[RecallReason]:
        """Explain why a query recalls a memory or does not; nothing changes."""
        body = _recall_body(query, limit, session, types, since, until, min_importance, min_trust)
        return post(RecallReason, f"/agents/{segment(agent_id)}/memories/{segment(memory_id)}/why", body)

    @listing
    def list(
        self,
        agent_id: Id,
        *,
        type: str | None = None,  # noqa: A002 (the name in the API)
        status: str | None = None,
        session: str | None = None,
        min_importance: float | None = None,
        pinned: bool | None = None,
    ) -> PagedCall[Memory]:
        """List an agent's memories, the latest first."""
        return listed(
            Memory,
            f"/agents/{segment(agent_id)}/memories",
            type=type,
            status=status,
            session=session,
            min_importance=min_importance,
            pinned=pinned,
        )

    @operation
    def get(self, agent_id: Id, memory_id: Id) -> Call[MemoryDetails]:
        """Return a memory with its details and use."""
        return get(MemoryDetails, f"/agents/{segment(agent_id)}/memories/{segment(memory_id)}")

    @operation
    def archive(self, agent_id: Id, ids: Iterable[Id], *, reason: str) -> Call[Changed]:
        """Exclude memories from recall. Nothing is lost."""
        return post(Changed, f"/agents/{segment(agent_id)}/memories/archive", {"ids": ids, "reason": reason})

    @operation
    def restore(
        self, agent_id: Id, ids: Iterable[Id], *, reason: str, for_good: bool = False
    ) -> Call[Changed]:
        """Include archived memories in recall again; `for_good` makes them permanent."""
        body = {"ids": ids, "reason": reason, "for_good": for_good}
        return post(Changed, f"/agents/{segment(agent_id)}/memories/restore", body)

    @operation
    def purge(self, agent_id: Id, ids: Iterable[Id], *, reason: str) -> Call[Purged]:
        """Delete archived memories with all that depends on them, for good."""
        return post(Purged, f"/agents/{segment(agent_id)}/memories/purge", {"ids": ids, "reason": reason})

    @operation
    def pin(self, agent_id: Id, ids: Iterable[Id], *, reason: str = "") -> Call[Changed]:
        """Exempt memories from decay and forgetting, until they are unpinned."""
        return post(Changed, f"/agents/{segment(agent_id)}/memories/pin", {"ids": ids, "reason": reason})

    @operation
    def unpin(self, agent_id: Id, ids: Iterable[Id], *, reason: str = "") -> Call[Changed]:
        """Unpin memories: they get back their decay, retention and expiry."""
        return post(Changed, f"/agents/{segment(agent_id)}/memories/unpin", {"ids": ids, "reason": reason})

    @operation
    def quotas(self, agent_id: Id) -> Call[Rows[MemoryQuota]]:
        """Compare an agent's memories of each type with the quotas."""
        return rows_of(get(MemoryQuota, f"/agents/{segment(agent_id)}/memory-quotas"), under="results")

    @operation
    def candidates(self, agent_id: Id, *, limit: int = 50) -> Call[Rows[PromotionCandidate]]:
        """List the facts that may be proposed as parts of the self, and what each still lacks."""
        path = f"/agents/{segment(agent_id)}/promotion-candidates"
        return rows_of(get(PromotionCandidate, path, limit=limit), under="results")

    @operation
    def similar(self, agent_id: Id, text: str, *, limit: int = 10) -> Call[Rows[SimilarMemory]]:
        """Return the memories nearest to a text by meaning alone: words, time and importance do not count."""
        path = f"/agents/{segment(agent_id)}/similar-memories"
        return rows_of(get(SimilarMemory, path, text=text, limit=limit), under="results")


def _recall_body(
    query: str,
    limit: int,
    session: str,
    types: Iterable[str],
    since: datetime | None,
    until: datetime | None,
    min_importance: float,
    min_trust: float,
) -> dict[str, Any]:
    return {
        "query": query,
        "limit": limit,
        "session": session,
        "types": types,
        "since": since,
        "until": until,
        "min_importance": min_importance,
        "min_trust": min_trust,
    }
