"""The profile of an agent: who it is, with the public half of its identity, as one document."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from arbor.agents.endorsement import EndorsementStatus


class PublicKeyEntry(BaseModel, frozen=True):
    """A public key of an agent."""

    number: int = Field(description="From 1; the hash of the first signing key is the agent's public id.")
    public_key_hex: str
    signature_hex: str = Field(
        description="By the signing key before, or for an exchange key by a signing key; empty for the first signing key."
    )


class EndorsementEntry(BaseModel, frozen=True):
    """The System Authority's signed statement about an agent's identity."""

    status: EndorsementStatus
    serial: int = Field(description="Incremented by each further statement.")
    at: datetime
    reason: str = Field(description="Why the identity is suspended or revoked; empty while active.")
    authority_number: int = Field(description="The number of the System Authority's key that signed.")
    signature_hex: str


class IdentityEntry(BaseModel, frozen=True):
    """The public half of an agent's identity."""

    agent_id: str = Field(description="agent_ and the SHA-256 of its first public key.")
    public_key_hex: str = Field(description="The key that signs now; empty without one.")
    endorsement: EndorsementEntry | None = Field(description="Null: not endorsed, or not genuine.")
    refusal: str = Field(description="Why the agent may not act; empty if it may.")
    keys: tuple[PublicKeyEntry, ...] = Field(
        description="The signing keys (Ed25519), each signed by the one before."
    )
    keychain: tuple[PublicKeyEntry, ...] = Field(
        description="The exchange keys (X25519), for which messages are sealed."
    )


class RequestedCapabilityEntry(BaseModel, frozen=True):
    """A capability that the agent's template requested for it; it grants nothing."""

    resource: str = Field(examples=["arbor://fs/read/**"])
    description: str
    constraints: dict[str, Any]


class AgentProfile(BaseModel, frozen=True):
    """The profile of an agent; its rows are the truth, and this document is rendered from them."""

    id: UUID
    name: str
    status: str
    trust_tier: str = Field(description="The tier that its template asks for; `/tier` has its tier now.")
    template: str
    template_version: str
    character: dict[str, Any]
    identity: IdentityEntry
    requested_capabilities: tuple[RequestedCapabilityEntry, ...]
    created_at: datetime
