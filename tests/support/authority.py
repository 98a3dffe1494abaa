"""Builders of authorities: grants and requests signed with keys of tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from arbor.agents.identity import public_id
from arbor.authority.authorization import AgentAuthority, AgentGrants
from arbor.authority.grants import ACTION_PREFIX, Capability, read_uri
from arbor.authority.requests import KeySigner

TENANT = UUID(int=1)
GRANTED_AT = datetime(2026, 1, 1, tzinfo=UTC)
ISSUER = "authority:1"


@dataclass(frozen=True)
class FixedKey:
    """A signing key of a fixed seed."""

    seed: int
    number: int = 1

    @property
    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(bytes([self.seed]) * 32)

    @property
    def public(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)


SYSTEM, AGENT_KEY, OTHER_KEY = FixedKey(1), FixedKey(2), FixedKey(3)
PUBLIC_ID, OTHER_ID = public_id(AGENT_KEY.public), public_id(OTHER_KEY.public)
SIGNER = KeySigner(lambda: AGENT_KEY)


def grant_of(resource: str, *, by: FixedKey = SYSTEM, **fields: Any) -> Capability:
    """Return a signed grant to the agent of the tests."""
    values: dict[str, Any] = {
        "id": "cap_" + UUID(int=10).hex,
        "tenant": str(TENANT),
        "agent": PUBLIC_ID,
        "issuer": ISSUER,
        "granted_at": GRANTED_AT,
    }
    grant = Capability(resource=read_uri(resource), **(values | fields))
    return replace(grant, signature=by.sign(grant.message()).hex())


def grants_of(*actions: str) -> tuple[Capability, ...]:
    """Return a signed grant of each action."""
    return tuple(
        grant_of(ACTION_PREFIX + action, id=f"cap_{number:032x}") for number, action in enumerate(actions, 1)
    )


def authority_of(*grants: Capability, **fields: Any) -> AgentAuthority:
    """Return the authority of the agent of the tests."""
    values: dict[str, Any] = {
        "tenant": str(TENANT),
        "public_id": PUBLIC_ID,
        "keys": {1: AGENT_KEY.public},
        "issuers": {ISSUER: SYSTEM.public},
        "grants": AgentGrants(grants),
    }
    return AgentAuthority(**(values | fields))


#: The authority of an agent that may do everything.
EVERYTHING = authority_of(grant_of(ACTION_PREFIX + "*"))
