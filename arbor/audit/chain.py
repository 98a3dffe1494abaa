"""The chain of seals: digests of audit records and ended heartbeats, block by block, each seal over the one before.

A seal has the digest of the one before it and a signature of the System Authority, so nobody without its key can change, remove, insert or
reorder what is sealed without breaking the chain. The bytes that are digested are JSON with sorted keys and without spaces, so
that other programs can compute them from an export.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

#: The version of the headers of seals. A new version has another set of digested fields.
CHAIN_VERSION = 1
#: Bytes of a row's digest in a block. 128 bits withstand a search for a second text with the same digest.
ROW_DIGEST_BYTES = 16
_ID_BYTES = 16
_EVENT_BYTES = _ID_BYTES + ROW_DIGEST_BYTES
_HEARTBEAT_BYTES = 2 * _ID_BYTES + ROW_DIGEST_BYTES
#: The beginning of the signed bytes, so that a signature for another purpose is not a signature of a seal.
_SIGNED_LABEL = b"arbor/audit-seal/v1\0"
#: The digest before the first seal.
NO_SEAL = bytes(32)
#: The chain of the installation's own records.
PLATFORM = "platform"


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedRow:
    """A sealed row and its digest, as a block has them."""

    id: UUID
    digest: bytes
    #: The agent of a heartbeat; None for an audit record.
    agent_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SealHeader:
    """The fields that a seal vouches for. Its digest is the next seal's `previous`."""

    #: A tenant's id, or PLATFORM.
    chain: str
    #: The position in the chain, from 1 without gaps.
    number: int
    at: datetime
    previous: bytes
    #: The position (transaction, id) of the last audit record in this seal or before.
    position: int
    last_id: UUID | None
    events: int
    events_digest: bytes
    #: The cursor among the tenant's signals up to which the ended heartbeats are sealed.
    cursor: str
    heartbeats: int
    heartbeats_digest: bytes

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the header."""
        return hashlib.sha256(canonical_json(self._fields())).digest()

    @property
    def signed_bytes(self) -> bytes:
        """The bytes that the System Authority signs."""
        return _SIGNED_LABEL + self.digest

    def _fields(self) -> dict[str, Any]:
        return {
            "v": CHAIN_VERSION,
            "chain": self.chain,
            "number": self.number,
            "at": format_moment(self.at),
            "previous": self.previous.hex(),
            "position": self.position,
            "last_id": str(self.last_id or ""),
            "events": self.events,
            "events_digest": self.events_digest.hex(),
            "cursor": self.cursor,
            "heartbeats": self.heartbeats,
            "heartbeats_digest": self.heartbeats_digest.hex(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Seal:
    """A stored seal: the header, and the digest and signature that were stored with it."""

    header: SealHeader
    digest: bytes
    key_number: int
    signature: bytes


def canonical_json(value: Mapping[str, Any]) -> bytes:
    """Return the bytes of a JSON object that are digested."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def format_moment(at: datetime) -> str:
    """Return a time as digested texts have it: UTC, with microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def row_digest(value: Mapping[str, Any]) -> bytes:
    """Return the digest of a row."""
    return hashlib.sha256(canonical_json(value)).digest()[:ROW_DIGEST_BYTES]


def pack_events(rows: Iterable[SealedRow]) -> bytes:
    """Return audit records as a block has them: id and digest, in the order of their commits."""
    return b"".join(row.id.bytes + row.digest for row in rows)


def pack_heartbeats(rows: Iterable[SealedRow]) -> bytes:
    """Return heartbeats as a block has them: id, agent and digest, in the order in which they ended."""
    return b"".join(row.id.bytes + (row.agent_id or UUID(int=0)).bytes + row.digest for row in rows)


def unpack_events(block: bytes) -> list[SealedRow]:
    """Return the audit records of a block."""
    return [
        SealedRow(id=UUID(bytes=part[:_ID_BYTES]), digest=part[_ID_BYTES:])
        for part in _parts(block, _EVENT_BYTES)
    ]


def unpack_heartbeats(block: bytes) -> list[SealedRow]:
    """Return the heartbeats of a block."""
    return [
        SealedRow(
            id=UUID(bytes=part[:_ID_BYTES]),
            agent_id=UUID(bytes=part[_ID_BYTES : 2 * _ID_BYTES]),
            digest=part[2 * _ID_BYTES :],
        )
        for part in _parts(block, _HEARTBEAT_BYTES)
    ]


def block_digest(block: bytes) -> bytes:
    """Return the digest of a block."""
    return hashlib.sha256(block).digest()


def _parts(block: bytes, size: int) -> Sequence[bytes]:
    return [block[start : start + size] for start in range(0, len(block) - len(block) % size, size)]
