"""The self of an agent: proposals of changes, preferences, drives and mood, experiences, peers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, delete, get, listed, post, put, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A change of the self that waits for a decision, or was decided."""

    id: UUID
    #: fact, insight, learning, pattern, preconscious, identity, belief or preference.
    kind: str
    content: str
    change: Any
    confidence: float
    evidence: Any
    #: pending, accepted, rejected or expired.
    status: str
    source: str
    deferrals: int
    reason: str
    decided_by: str
    created_at: datetime
    decided_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class Preference:
    """A preference under a key."""

    key: str
    value: str
    source: str
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Drive:
    """A drive and its level, 0 to 1."""

    name: str
    level: float
    urgent: bool


@dataclass(frozen=True, kw_only=True)
class InnerState:
    """The drives and the mood of an agent, now."""

    drives: list[Drive]
    next_urgent_at: datetime | None
    #: -1 to 1.
    valence: float
    #: 0 to 1.
    arousal: float


@dataclass(frozen=True, kw_only=True)
class Experience:
    """An action with its outcome and its lesson."""

    id: UUID
    heartbeat_id: UUID
    heartbeat_number: int
    action: str
    about: str
    outcome: str
    lesson: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A person or agent that an agent deals with."""

    id: UUID
    name: str
    is_agent: bool
    interactions: int
    successes: int
    reliability: float
    competence: float
    interests: list[str]
    last_at: datetime | None


class Proposals[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about proposals."""

    @listing
    def list(self, agent_id: Id, *, status: str | None = None) -> PagedCall[Proposal]:
        """List proposals, the latest first; `status="pending"`: those that wait for a decision."""
        return listed(Proposal, f"/agents/{segment(agent_id)}/proposals", status=status)

    @operation
    def add(
        self, agent_id: Id, content: str, *, kind: str = "insight", confidence: float = 0.7
    ) -> Call[Proposal]:
        """Add a proposal. The agent decides it at its next heartbeat, unless a person does before."""
        body = {"content": content, "kind": kind, "confidence": confidence}
        return post(Proposal, f"/agents/{segment(agent_id)}/proposals", body)

    @operation
    def accept(self, agent_id: Id, proposal_id: Id, *, reason: str = "") -> Call[Proposal]:
        """Accept a proposal and apply it; an accepted one stays as it is. Raises Conflict if it is rejected or expired."""
        return post(
            Proposal,
            f"/agents/{segment(agent_id)}/proposals/{segment(proposal_id)}/accept",
            {"reason": reason},
        )

    @operation
    def reject(self, agent_id: Id, proposal_id: Id, *, reason: str = "") -> Call[Proposal]:
        """Reject a proposal for good. Raises Conflict if it is decided or expired."""
        return post(
            Proposal,
            f"/agents/{segment(agent_id)}/proposals/{segment(proposal_id)}/reject",
            {"reason": reason},
        )

    @operation
    def defer(self, agent_id: Id, proposal_id: Id, *, reason: str = "") -> Call[Proposal]:
        """Defer the decision about a proposal. Raises Conflict if it is decided or expired."""
        return post(
            Proposal,
            f"/agents/{segment(agent_id)}/proposals/{segment(proposal_id)}/defer",
            {"reason": reason},
        )


class Preferences[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about preferences."""

    @listing
    def list(self, agent_id: Id) -> PagedCall[Preference]:
        """List an agent's preferences by key."""
        return listed(Preference, f"/agents/{segment(agent_id)}/preferences")

    @operation
    def set(self, agent_id: Id, key: str, value: str) -> Call[Preference]:
        """Set an agent's preference under a key."""
        return put(Preference, f"/agents/{segment(agent_id)}/preferences/{segment(key)}", {"value": value})

    @operation
    def remove(self, agent_id: Id, key: str) -> Call[Preference | None]:
        """Remove a preference, and return it."""
        return delete(Preference, f"/agents/{segment(agent_id)}/preferences/{segment(key)}")


class Selves[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the inner state, experiences and peers."""

    @operation
    def inner_state(self, agent_id: Id) -> Call[InnerState]:
        """Return an agent's drives and mood, now."""
        return get(InnerState, f"/agents/{segment(agent_id)}/inner-state")

    @listing
    def experiences(self, agent_id: Id) -> PagedCall[Experience]:
        """List an agent's actions with their outcomes and lessons, the latest first."""
        return listed(Experience, f"/agents/{segment(agent_id)}/experiences")

    @listing
    def peers(self, agent_id: Id) -> PagedCall[Peer]:
        """List the people and agents that an agent deals with, by name."""
        return listed(Peer, f"/agents/{segment(agent_id)}/peers")
