"""Endorsements: the signed statements of the System Authority about the identities of agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from arbor.agents.identity import prefixed_bytes, verify
from arbor.agents.keys import KeyChain, SigningKey
from arbor.errors import IdentityRefused, TransitionIllegal

#: The issuer of endorsements, and of grants that no agent delegated.
SYSTEM_AUTHORITY = "system"
REASON_LENGTH = 500
#: Endorsements whose signatures a process has verified, about 1 KB each.
_ENDORSEMENTS_CACHED = 4096
_LABEL = "arbor/endorsement/v1"


class EndorsementStatus(StrEnum):
    """The status of an identity."""

    #: The agent acts, and others may write to it.
    ACTIVE = "active"
    #: The agent does not act until its identity is reinstated.
    SUSPENDED = "suspended"
    #: The agent never acts again.
    REVOKED = "revoked"


_TRANSITIONS: Mapping[EndorsementStatus, frozenset[EndorsementStatus]] = {
    EndorsementStatus.ACTIVE: frozenset({EndorsementStatus.SUSPENDED, EndorsementStatus.REVOKED}),
    EndorsementStatus.SUSPENDED: frozenset({EndorsementStatus.ACTIVE, EndorsementStatus.REVOKED}),
    EndorsementStatus.REVOKED: frozenset(),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Endorsement:
    """The statement of the System Authority about an agent's identity, and its signature."""

    status: EndorsementStatus
    #: Incremented by each further statement about the agent.
    serial: int
    at: datetime
    #: Why the identity is suspended or revoked; empty while active.
    reason: str
    #: The number of the System Authority's key that signed.
    authority_number: int
    signature: bytes = b""

    @property
    def is_active(self) -> bool:
        """Return whether the agent may act."""
        return self.status is EndorsementStatus.ACTIVE


def endorse(
    chain: KeyChain,
    *,
    authority: SigningKey,
    serial: int,
    at: datetime,
    status: EndorsementStatus = EndorsementStatus.ACTIVE,
    reason: str = "",
) -> Endorsement:
    """Sign a statement about an agent's identity and its current key."""
    unsigned = Endorsement(
        status=status, serial=serial, at=at, reason=reason, authority_number=authority.number
    )
    return replace(unsigned, signature=authority.sign(_statement(chain, unsigned)))


def require_transition(before: EndorsementStatus, after: EndorsementStatus, *, name: str) -> None:
    """Raise TransitionIllegal unless the identity of the agent `name` may change from one status to the other."""
    if after in _TRANSITIONS[before]:
        return
    hint = "; a revoked identity stays revoked" if before is EndorsementStatus.REVOKED else ""
    raise TransitionIllegal(f"the identity of {name} is {before}, so it cannot become {after}{hint}")


def verify_statement(
    chain: KeyChain, endorsement: Endorsement | None, authority_public_keys: Mapping[int, bytes]
) -> None:
    """Check the chain of keys, and that the System Authority signed the statement about it. Raises IdentityRefused.

    `authority_public_keys`: the System Authority's keys by number. Valid signatures are verified once per process.
    """
    chain.verify()
    if endorsement is None:
        raise IdentityRefused(f"{chain.public_id} is not endorsed; `arbor prepare` endorses agents")
    authority = authority_public_keys.get(endorsement.authority_number)
    if authority is None or not _is_signed(chain, endorsement, authority):
        raise IdentityRefused(
            f"the endorsement of {chain.public_id} is not signed by this installation's System Authority"
        )


def inactive_reason(endorsement: Endorsement) -> str:
    """Return the reason why an identity that is not active may not act."""
    return f"the identity is {endorsement.status}: {endorsement.reason}"


@lru_cache(maxsize=_ENDORSEMENTS_CACHED)
def _is_signed(chain: KeyChain, endorsement: Endorsement, authority: bytes) -> bool:
    return verify(authority, _statement(chain, endorsement), endorsement.signature)


def _statement(chain: KeyChain, endorsement: Endorsement) -> bytes:
    """Return the bytes to sign: they name the agent, its tenant and its current key, so no statement fits another."""
    key = chain.current
    return prefixed_bytes(
        _LABEL,
        chain.tenant_id,
        chain.public_id,
        key.number,
        key.public,
        endorsement.status,
        endorsement.serial,
        endorsement.at.astimezone(UTC).isoformat(timespec="microseconds"),
        endorsement.reason,
        endorsement.authority_number,
    )
