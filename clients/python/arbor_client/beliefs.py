"""Beliefs and aspects of the identity of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from arbor_client.calls import UNCHANGED, Call, Id, PagedCall, Unchanged, get, listed, patch, post, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Belief:
    """A belief."""

    id: UUID
    #: self, others, world, time or causality.
    category: str
    statement: str
    #: 0 to 1.
    confidence: float
    #: 0 to 1: the resistance to change.
    stability: float
    #: held, questioned or dropped.
    status: str
    source: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Aspect:
    """An aspect of an agent's identity."""

    id: UUID
    #: trait, value, capability, self_concept, agency, purpose, emotional_baseline, threat_sensitivity or change_resistance.
    kind: str
    content: str
    #: 0 to 1: of a trait its strength, of a value its importance, of a capability the proficiency.
    strength: float
    #: 0 to 1: the resistance to change.
    stability: float
    #: held, questioned or dropped.
    status: str
    source: str
    created_at: datetime
    updated_at: datetime


class Beliefs[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about beliefs."""

    @listing
    def list(self, agent_id: Id, *, status: str | None = None) -> PagedCall[Belief]:
        """List an agent's beliefs, the oldest first."""
        return listed(Belief, f"/agents/{segment(agent_id)}/beliefs", status=status)

    @operation
    def get(self, agent_id: Id, belief_id: Id) -> Call[Belief]:
        """Return a belief."""
        return get(Belief, f"/agents/{segment(agent_id)}/beliefs/{segment(belief_id)}")

    @operation
    def add(
        self,
        agent_id: Id,
        statement: str,
        *,
        category: str = "world",
        confidence: float = 0.7,
        stability: float = 0.5,
    ) -> Call[Belief]:
        """Add a belief, as a person does."""
        body = {
            "statement": statement,
            "category": category,
            "confidence": confidence,
            "stability": stability,
        }
        return post(Belief, f"/agents/{segment(agent_id)}/beliefs", body)

    @operation
    def change(
        self,
        agent_id: Id,
        belief_id: Id,
        *,
        confidence: float | Unchanged = UNCHANGED,
        stability: float | Unchanged = UNCHANGED,
        status: str | Unchanged = UNCHANGED,
        reason: str = "",
    ) -> Call[Belief]:
        """Revise a belief; `status="dropped"` drops it, and its row stays for the record."""
        changes = {"confidence": confidence, "stability": stability, "status": status, "reason": reason}
        return patch(Belief, f"/agents/{segment(agent_id)}/beliefs/{segment(belief_id)}", changes)


class Aspects[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about aspects of the identity."""

    @listing
    def list(self, agent_id: Id, *, status: str | None = None) -> PagedCall[Aspect]:
        """List the aspects of an agent's identity, the oldest first."""
        return listed(Aspect, f"/agents/{segment(agent_id)}/aspects", status=status)

    @operation
    def add(
        self, agent_id: Id, content: str, *, kind: str, strength: float = 0.5, stability: float = 0.5
    ) -> Call[Aspect]:
        """Add an aspect to an agent's identity: a trait, value or capability is a few words."""
        body = {"content": content, "kind": kind, "strength": strength, "stability": stability}
        return post(Aspect, f"/agents/{segment(agent_id)}/aspects", body)

    @operation
    def change(
        self,
        agent_id: Id,
        aspect_id: Id,
        *,
        strength: float | Unchanged = UNCHANGED,
        stability: float | Unchanged = UNCHANGED,
        status: str | Unchanged = UNCHANGED,
        reason: str = "",
    ) -> Call[Aspect]:
        """Revise an aspect's strength, stability or status."""
        changes = {"strength": strength, "stability": stability, "status": status, "reason": reason}
        return patch(Aspect, f"/agents/{segment(agent_id)}/aspects/{segment(aspect_id)}", changes)

    @operation
    def drop(self, agent_id: Id, aspect_id: Id, *, reason: str = "") -> Call[Aspect]:
        """Drop an aspect. Its row stays for the record."""
        return post(
            Aspect, f"/agents/{segment(agent_id)}/aspects/{segment(aspect_id)}/drop", {"reason": reason}
        )
