"""Verify a chain of seals against the rows that it vouches for, and count what is not sealed yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import batched
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.audit.models import AuditAction
from apps.audit.services.chains import AuditChain
from arbor.audit.chain import Seal, SealedRow, unpacked_events, unpacked_heartbeats
from arbor.audit.faults import ChainFault, FaultKind, RowKind, block_faults, row_faults, seal_faults
from arbor.history import LEAST_AUDIT_AGE, Record
from arbor.ids import time_of

#: Seals that are compared with their rows at once.
_SEALS_AT_ONCE = 100
#: Faults that a report lists; it counts all.
_MOST_FAULTS = 100
#: Records of deletions that are looked at: each reaches further than the one before.
_DELETIONS_READ = 50

#: Returns the digests of ended heartbeats of a tenant by their ids.
type HeartbeatDigests = Callable[[UUID, Sequence[UUID]], Mapping[UUID, bytes]]


@dataclass(kw_only=True, slots=True)
class ChainReport:
    """The result of the verification of one chain."""

    chain: str
    seals: int = 0
    #: Sealed rows that are as they were.
    events: int = 0
    heartbeats: int = 0
    #: Sealed rows that were deleted by age, or with their agent; their seals remain.
    aged: int = 0
    #: The first faults, in the order of the chain; `fault_count` counts all.
    faults: list[ChainFault] = field(default_factory=list)
    fault_count: int = 0
    unsealed_events: int = 0
    #: Heartbeats that ended since, up to ten thousand.
    unsealed_heartbeats: int = 0
    #: The time of the first record that is not sealed yet.
    unsealed_since: datetime | None = None
    head: Seal | None = None
    #: The sealed heartbeats, and the time since when all that ended are known: that of the first seal whose digests remain.
    sealed_heartbeats: set[UUID] = field(default_factory=set)
    complete_since: datetime | None = None

    @property
    def broken_at(self) -> ChainFault | None:
        """The first broken link."""
        return self.faults[0] if self.faults else None

    def as_json(self) -> dict[str, Any]:
        """Return the report as programs get it."""
        first = self.broken_at
        return {
            "chain": self.chain,
            "intact": first is None,
            "broken_at": _fault_json(first) if first else None,
            "faults": [_fault_json(fault) for fault in self.faults],
            "fault_count": self.fault_count,
            "seals": self.seals,
            "events": self.events,
            "heartbeats": self.heartbeats,
            "aged": self.aged,
            "unsealed_events": self.unsealed_events,
            "unsealed_heartbeats": self.unsealed_heartbeats,
            "unsealed_since": self.unsealed_since,
            "head": self.head.digest.hex() if self.head else None,
        }

    def add(self, faults: Iterator[ChainFault]) -> None:
        """Add faults."""
        for fault in faults:
            self.fault_count += 1
            if len(self.faults) < _MOST_FAULTS:
                self.faults.append(fault)


def _fault_json(fault: ChainFault) -> dict[str, Any]:
    return {
        "kind": fault.kind.value,
        "seal": fault.number,
        "row": fault.row.value if fault.row else None,
        "id": str(fault.id) if fault.id else None,
        "message": str(fault),
    }


def verify_chain(
    chain: AuditChain,
    *,
    keys: Mapping[int, bytes],
    heartbeat_digests: HeartbeatDigests,
    now: datetime,
    heads: Mapping[int, str] | None = None,
    latest: int | None = None,
) -> ChainReport:
    """Verify the seals of a chain, the rows under them, and the heads that were exported before, by number.

    All seals, or the `latest` ones: then the seal before them is taken as it is, and heads before it are not compared.
    `keys` are the System Authority's public keys, each checked against its private half. Four statements for a hundred seals.
    """
    report = ChainReport(chain=chain.name)
    lawful = _Lawful(chain, now)
    before = _last_but(chain, latest) if latest is not None else None
    first = before.header.number if before else 0
    exported = {number: digest for number, digest in (heads or {}).items() if number > first}
    seals_after = chain.seals().filter(number__gt=first).order_by("number")
    for rows in batched(seals_after.iterator(chunk_size=1_000), _SEALS_AT_ONCE, strict=False):
        seals = [chain.seal_of(row) for row in rows]
        blocks = {
            block.seal_id: block for block in chain.blocks().filter(seal_id__in=[row.id for row in rows])
        }
        found = _found_events(chain, before, seals)
        heartbeats = _found_heartbeats(chain, blocks.values(), heartbeat_digests)
        for row, seal, events in zip(rows, seals, found, strict=True):
            report.seals += 1
            report.add(seal_faults(seal, before=before, keys=keys))
            if exported.pop(seal.header.number, seal.digest.hex()) != seal.digest.hex():
                report.add(iter([ChainFault(kind=FaultKind.HEAD_REPLACED, number=seal.header.number)]))
            _verify_block(
                report, seal, blocks.get(row.id), events=events, heartbeats=heartbeats, lawful=lawful
            )
            before = seal
    report.add(ChainFault(kind=FaultKind.HEAD_REPLACED, number=number) for number in sorted(exported))
    report.head = before
    unsealed = chain.events_after(before)
    report.unsealed_events = unsealed.count()
    oldest = unsealed.order_by("at").values_list("at", flat=True).first() if report.unsealed_events else None
    report.unsealed_since = oldest
    return report


def _last_but(chain: AuditChain, latest: int) -> Seal | None:
    """Return the seal before the latest ones, or none."""
    row = chain.seals().order_by("-number")[latest : latest + 1].first()
    return chain.seal_of(row) if row else None


def _verify_block(
    report: ChainReport,
    seal: Seal,
    block: Any,
    *,
    events: Mapping[UUID, bytes],
    heartbeats: Mapping[UUID, bytes],
    lawful: _Lawful,
) -> None:
    number = seal.header.number
    if block is None:
        if not lawful.is_aged_block(seal):
            report.add(iter([ChainFault(kind=FaultKind.BLOCK_MISSING, number=number)]))
        report.aged += seal.header.events + seal.header.heartbeats
        report.complete_since = None
        return
    report.complete_since = report.complete_since or seal.header.at
    packed, packed_heartbeats = bytes(block.events), bytes(block.heartbeats)
    faults = list(block_faults(seal, events=packed, heartbeats=packed_heartbeats))
    report.add(iter(faults))
    sealed, sealed_heartbeats = unpacked_events(packed), unpacked_heartbeats(packed_heartbeats)
    report.add(
        row_faults(number, RowKind.EVENT, sealed=sealed, found=events, explained=lawful.is_deleted_event)
    )
    report.sealed_heartbeats |= {row.id for row in sealed_heartbeats}
    own = {row.id: heartbeats[row.id] for row in sealed_heartbeats if row.id in heartbeats}
    report.add(
        row_faults(
            number,
            RowKind.HEARTBEAT,
            sealed=sealed_heartbeats,
            found=own,
            explained=lawful.is_deleted_heartbeat,
        )
    )
    report.events += sum(1 for row in sealed if events.get(row.id) == row.digest)
    report.heartbeats += sum(1 for row in sealed_heartbeats if own.get(row.id) == row.digest)
    report.aged += sum(1 for row in sealed if row.id not in events and lawful.is_deleted_event(row))
    report.aged += sum(
        1 for row in sealed_heartbeats if row.id not in own and lawful.is_deleted_heartbeat(row)
    )


def _found_events(chain: AuditChain, before: Seal | None, seals: Sequence[Seal]) -> list[dict[UUID, bytes]]:
    """Return the digests of the rows that lie under each of these seals now, by their positions. One statement."""
    ends = [_place(seal.header.position, seal.header.last_id) for seal in seals]
    found: list[dict[UUID, bytes]] = [{} for _ in seals]
    current = 0
    rows = chain.events_after(before).filter(position__lte=seals[-1].header.position)
    for row in rows.iterator(chunk_size=1_000):
        place = _place(row.position, row.id)
        while current < len(ends) and place > ends[current]:
            current += 1
        if current == len(ends):
            break
        found[current][row.id] = chain.digest_of(row)
    return found


def _place(position: int, row_id: UUID | None) -> tuple[int, int]:
    return position, row_id.int if row_id else -1


def _found_heartbeats(
    chain: AuditChain, blocks: Collection[Any], digests: HeartbeatDigests
) -> Mapping[UUID, bytes]:
    ids = [row.id for block in blocks for row in unpacked_heartbeats(bytes(block.heartbeats))]
    return digests(chain.tenant_id, ids) if ids and chain.tenant_id else {}


class _Lawful:
    """Tells whether the absence of a sealed row has a lawful cause: its age, or the destruction of its agent."""

    def __init__(self, chain: AuditChain, now: datetime) -> None:
        self._now = now
        self._events_until = _deleted_until(chain)
        self._destroyed: set[UUID] = (
            set(chain.events().filter(action=AuditAction.AGENT_DESTROYED).values_list("agent_id", flat=True))
            if chain.tenant_id
            else set()
        )

    def is_deleted_event(self, row: SealedRow) -> bool:
        """Return whether a recorded deletion by age covers an audit record."""
        return self._events_until is not None and time_of(row.id) <= self._events_until

    def is_deleted_heartbeat(self, row: SealedRow) -> bool:
        """Return whether a heartbeat is older than heartbeats are kept, or its agent was destroyed."""
        return row.agent_id in self._destroyed or self._is_older(time_of(row.id), Record.HEARTBEATS)

    def is_aged_block(self, seal: Seal) -> bool:
        """Return whether the digests under a seal are older than the audit log is kept."""
        return self._is_older(seal.header.at, Record.AUDIT)

    def _is_older(self, at: datetime, record: Record) -> bool:
        age: timedelta | None = settings.ARBOR_HISTORY_AGES[record]
        return age is not None and at < self._now - age


def _deleted_until(chain: AuditChain) -> datetime | None:
    """Return the time up to which records of deletions by age explain missing rows; never later than the least age allows."""
    rows = chain.events().filter(action=AuditAction.AUDIT_DELETED).order_by("-at")[:_DELETIONS_READ]
    until = [
        min(datetime.fromisoformat(row.detail["until"]), row.at - LEAST_AUDIT_AGE)
        for row in rows
        if "until" in row.detail
    ]
    return max(until, default=None)
