"""The faults of a chain of seals, found by comparing it with the rows that it vouches for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from arbor.agents.identity import verify
from arbor.audit.chain import NO_SEAL, Seal, SealedRow, block_digest


class FaultKind(StrEnum):
    """The kinds of faults."""

    #: A number is missing between two seals.
    SEAL_MISSING = "seal_missing"
    #: A seal is not over the one before it.
    SEAL_UNLINKED = "seal_unlinked"
    #: A seal differs from its own digest.
    SEAL_CHANGED = "seal_changed"
    #: The System Authority did not sign the seal.
    SEAL_FORGED = "seal_forged"
    #: A seal that was exported is not in the chain.
    HEAD_REPLACED = "head_replaced"
    #: The digests of the rows under a seal are gone, before their age.
    BLOCK_MISSING = "block_missing"
    #: The digests of the rows under a seal are not the sealed ones.
    BLOCK_CHANGED = "block_changed"
    #: A sealed row is gone, before its age.
    ROW_MISSING = "row_missing"
    #: A row differs from what was sealed.
    ROW_CHANGED = "row_changed"
    #: A row lies among the sealed ones, but was not sealed.
    ROW_ADDED = "row_added"


class RowKind(StrEnum):
    """The kinds of sealed rows."""

    #: An audit record.
    EVENT = "audit record"
    #: An ended heartbeat.
    HEARTBEAT = "heartbeat"


_MEANINGS: Mapping[FaultKind, str] = {
    FaultKind.SEAL_MISSING: "seal {number} is missing",
    FaultKind.SEAL_UNLINKED: "seal {number} is not over the seal before it",
    FaultKind.SEAL_CHANGED: "seal {number} was changed",
    FaultKind.SEAL_FORGED: "seal {number} is not signed by this installation",
    FaultKind.HEAD_REPLACED: "seal {number} is not the one that was exported",
    FaultKind.BLOCK_MISSING: "the digests under seal {number} are gone",
    FaultKind.BLOCK_CHANGED: "the digests under seal {number} were changed",
    FaultKind.ROW_MISSING: "the {row} {id} of seal {number} was deleted",
    FaultKind.ROW_CHANGED: "the {row} {id} of seal {number} was changed",
    FaultKind.ROW_ADDED: "the {row} {id} was added among those of seal {number}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainFault:
    """A fault, with its seal and its row."""

    kind: FaultKind
    #: The number of the seal.
    number: int
    row: RowKind | None = None
    id: UUID | None = None

    def __str__(self) -> str:
        return _MEANINGS[self.kind].format(number=self.number, row=self.row, id=self.id)


def seal_faults(seal: Seal, *, before: Seal | None, keys: Mapping[int, bytes]) -> Iterator[ChainFault]:
    """Yield the faults of a seal after the one before it; `keys` are the System Authority's public keys by number."""
    header = seal.header
    number = header.number
    expected = before.header.number + 1 if before else 1
    if number != expected:
        yield ChainFault(kind=FaultKind.SEAL_MISSING, number=expected)
    elif header.previous != (before.digest if before else NO_SEAL):
        yield ChainFault(kind=FaultKind.SEAL_UNLINKED, number=number)
    if header.digest != seal.digest:
        yield ChainFault(kind=FaultKind.SEAL_CHANGED, number=number)
    key = keys.get(seal.key_number)
    if key is None or not verify(key, header.signed_bytes, seal.signature):
        yield ChainFault(kind=FaultKind.SEAL_FORGED, number=number)


def block_faults(seal: Seal, *, events: bytes, heartbeats: bytes) -> Iterator[ChainFault]:
    """Yield the fault of digests that are not those of the seal."""
    header = seal.header
    if (block_digest(events), block_digest(heartbeats)) != (header.events_digest, header.heartbeats_digest):
        yield ChainFault(kind=FaultKind.BLOCK_CHANGED, number=header.number)


def row_faults(
    number: int,
    kind: RowKind,
    *,
    sealed: Sequence[SealedRow],
    found: Mapping[UUID, bytes],
    explained: Callable[[SealedRow], bool],
) -> Iterator[ChainFault]:
    """Yield the faults of the rows under a seal; `found` are the digests of the rows as they are now.

    `explained` returns whether a recorded deletion explains that a row is missing.
    """
    for row in sealed:
        digest = found.get(row.id)
        if digest is None:
            if not explained(row):
                yield ChainFault(kind=FaultKind.ROW_MISSING, number=number, row=kind, id=row.id)
        elif digest != row.digest:
            yield ChainFault(kind=FaultKind.ROW_CHANGED, number=number, row=kind, id=row.id)
    for row_id in sorted(found.keys() - {row.id for row in sealed}):
        yield ChainFault(kind=FaultKind.ROW_ADDED, number=number, row=kind, id=row_id)
