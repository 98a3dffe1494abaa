"""Identities of agents: keys, endorsements and profiles."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, get, post, segment
from arbor_client.groups import Group, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class PublicKey:
    """A public key of an agent."""

    #: From 1; the hash of the first signing key is the agent's public id.
    number: int
    public_key_hex: str
    #: By the signing key before, or for an exchange key by a signing key; empty for the first signing key.
    signature_hex: str


@dataclass(frozen=True, kw_only=True)
class Endorsement:
    """The signed statement of the installation's System Authority about an agent."""

    #: active, suspended or revoked.
    status: str
    serial: int
    at: datetime
    reason: str
    authority_number: int
    signature_hex: str


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The public half of an agent's identity."""

    #: The agent's public id.
    agent_id: str
    #: The key that signs now.
    public_key_hex: str
    #: None: not endorsed, or not genuine.
    endorsement: Endorsement | None
    #: Why the agent may not act; empty if it may.
    refusal: str
    keys: list[PublicKey]
    #: The keys for which messages are sealed.
    keychain: list[PublicKey]


@dataclass(frozen=True, kw_only=True)
class RequestedCapability:
    """A capability that the agent's template requested for it; it grants nothing."""

    resource: str
    description: str
    constraints: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The profile of an agent."""

    id: UUID
    name: str
    status: str
    #: The tier that its template asks for; `tiers.get` returns its tier now.
    trust_tier: str
    template: str
    template_version: str
    character: dict[str, Any]
    identity: Identity
    requested_capabilities: list[RequestedCapability]
    created_at: datetime


class Identities[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about identities."""

    @operation
    def get(self, agent_id: Id) -> Call[Identity]:
        """Return the public half of an agent's identity, verified by the server."""
        return get(Identity, f"/agents/{segment(agent_id)}/identity")

    @operation
    def profile(self, agent_id: Id) -> Call[Profile]:
        """Return an agent's profile."""
        return get(Profile, f"/agents/{segment(agent_id)}/profile")

    @operation
    def suspend(self, agent_id: Id, *, reason: str) -> Call[Identity]:
        """Suspend an agent's identity: it does not act until it is reinstated."""
        return post(Identity, f"/agents/{segment(agent_id)}/identity/suspend", {"reason": reason})

    @operation
    def reinstate(self, agent_id: Id) -> Call[Identity]:
        """End the suspension of an agent's identity."""
        return post(Identity, f"/agents/{segment(agent_id)}/identity/reinstate")

    @operation
    def revoke(self, agent_id: Id, *, reason: str) -> Call[Identity]:
        """Revoke an agent's identity for good."""
        return post(Identity, f"/agents/{segment(agent_id)}/identity/revoke", {"reason": reason})

    @operation
    def rotate(self, agent_id: Id) -> Call[Identity]:
        """Replace an agent's keys; its public id stays."""
        return post(Identity, f"/agents/{segment(agent_id)}/identity/rotate")
