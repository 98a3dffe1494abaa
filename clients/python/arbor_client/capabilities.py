"""Capabilities of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, get, listed, post, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class Capability:
    """A grant of a resource to an agent."""

    id: UUID
    #: `cap_` and 32 hexadecimal digits.
    name: str
    #: None: all agents of the tenant.
    agent_id: UUID | None
    resource: str
    #: in_force, not_yet, expired, revoked or unsigned.
    status: str
    constraints: dict[str, Any]
    #: The capability that it was delegated from.
    parent_id: UUID | None
    #: The levels of delegation that are allowed below it.
    depth: int
    granted_by: str
    granted_at: datetime
    revoked_at: datetime | None
    revoked_reason: str


@dataclass(frozen=True, kw_only=True)
class RevokedCapabilities:
    """The number of revoked capabilities."""

    revoked: int


@dataclass(frozen=True, kw_only=True)
class TriedCapability:
    """A capability that covers the resource, and why it does not authorize it."""

    capability: str
    resource: str
    code: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class CapabilityExplanation:
    """The decision whether an agent may use a resource now."""

    resource: str
    granted: bool
    #: The capability that authorizes it; empty if none does.
    capability: str
    #: Why not; empty if granted.
    code: str
    #: Why not; of a granted resource, that a person is asked first.
    reason: str
    tried: list[TriedCapability]


class Capabilities[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about capabilities."""

    @listing
    def list(self, agent_id: Id, *, revoked: bool = False) -> PagedCall[Capability]:
        """List the capabilities of an agent, including those granted to all agents; revoked ones on request."""
        return listed(Capability, f"/agents/{segment(agent_id)}/capabilities", revoked=revoked)

    @operation
    def grant(
        self,
        agent_id: Id,
        resource: str,
        *,
        not_before: datetime | None = None,
        expires_at: datetime | None = None,
        max_uses: int | None = None,
        rate_uses: int | None = None,
        rate_seconds: int | None = None,
        hours: str = "",
        time_zone: str = "UTC",
        depth: int = 3,
    ) -> Call[Capability]:
        """Grant a resource, such as `arbor://actions/execute/reach_out_public`, to an agent."""
        body = {
            "resource": resource,
            "not_before": not_before,
            "expires_at": expires_at,
            "max_uses": max_uses,
            "rate_uses": rate_uses,
            "rate_seconds": rate_seconds,
            "hours": hours,
            "time_zone": time_zone,
            "depth": depth,
        }
        return post(Capability, f"/agents/{segment(agent_id)}/capabilities", body)

    @operation
    def delegate(
        self,
        agent_id: Id,
        capability_id: Id,
        to_agent_id: Id,
        *,
        resource: str = "",
        not_before: datetime | None = None,
        expires_at: datetime | None = None,
        max_uses: int | None = None,
        rate_uses: int | None = None,
        rate_seconds: int | None = None,
        hours: str = "",
        time_zone: str = "UTC",
        depth: int | None = None,
    ) -> Call[Capability]:
        """Delegate a capability, or a part of it, to another agent; omitted constraints are inherited."""
        body = {
            "to_agent_id": to_agent_id,
            "resource": resource,
            "not_before": not_before,
            "expires_at": expires_at,
            "max_uses": max_uses,
            "rate_uses": rate_uses,
            "rate_seconds": rate_seconds,
            "hours": hours,
            "time_zone": time_zone,
            "depth": depth,
        }
        return post(
            Capability, f"/agents/{segment(agent_id)}/capabilities/{segment(capability_id)}/delegate", body
        )

    @operation
    def revoke(self, agent_id: Id, capability_id: Id, reason: str) -> Call[RevokedCapabilities]:
        """Revoke a capability and all that was delegated from it."""
        path = f"/agents/{segment(agent_id)}/capabilities/{segment(capability_id)}/revoke"
        return post(RevokedCapabilities, path, {"reason": reason})

    @operation
    def why(self, agent_id: Id, resource: str) -> Call[CapabilityExplanation]:
        """Explain whether an agent may use a resource, or an action by its name, now, and why not."""
        return get(
            CapabilityExplanation, f"/agents/{segment(agent_id)}/explain-capability", resource=resource
        )
