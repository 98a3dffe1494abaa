"""Verify a chain of seals against the rows under them, and count what is not sealed yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import batched
from typing import Any
from uuid import UUID

from apps.audit.services.chains import AuditChain
from apps.audit.services.deletions import recorded_deletions
from arbor.audit.chain import Seal, unpack_events, unpack_heartbeats
from arbor.audit.deletions import Deletions
from arbor.audit.faults import ChainFault, FaultKind, RowKind, block_faults, row_faults, seal_faults

#: Seals that are compared with their rows at once.
_SEALS_AT_ONCE = 100
#: How often a chain is read at most: again if records of deletions turn out to be forged, or were added meanwhile.
_MAX_READS = 4
#: Faults that a report lists at most; it counts all.
_MAX_FAULTS = 100

#: Returns the digests of ended heartbeats of a tenant by their ids.
type HeartbeatDigests = Callable[[UUID, Sequence[UUID]], Mapping[UUID, bytes]]


@dataclass(kw_only=True, slots=True)
class ChainReport:
    """The result of the verification of one chain."""

    chain: str
    seals: int = 0
    #: Sealed records and heartbeats that have not changed since.
    events: int = 0
    heartbeats: int = 0
    #: Sealed rows that were deleted by age, or with their agent; their seals remain.
    aged: int = 0
    #: The aged rows whose deletion is recorded, but not sealed yet.
    aged_unsealed: int = 0
    #: The first fault of the chain. Seals by retired keys that no later seal proves are found last.
    broken_at: ChainFault | None = None
    #: The first faults that were found; `fault_count` counts all.
    faults: list[ChainFault] = field(default_factory=list)
    fault_count: int = 0
    unsealed_events: int = 0
    #: Heartbeats that ended since the last seal, up to ten thousand.
    unsealed_heartbeats: int = 0
    #: The time of the first record that is not sealed yet.
    unsealed_since: datetime | None = None
    head: Seal | None = None
    #: The number of exported heads that the chain was compared with.
    heads: int = 0
    #: The sealed heartbeats whose digests remain. Since `complete_since`, the time of the first seal with digests, they are all that ended.
    sealed_heartbeats: set[UUID] = field(default_factory=set)
    complete_since: datetime | None = None
    #: The records of deletions that have not changed since they were sealed.
    sealed_deletions: set[UUID] = field(default_factory=set)

    def as_json(self) -> dict[str, Any]:
        """Return the report as the API and `--json` print it."""
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
            "aged_unsealed": self.aged_unsealed,
            "unsealed_events": self.unsealed_events,
            "unsealed_heartbeats": self.unsealed_heartbeats,
            "unsealed_since": self.unsealed_since,
            "head": self.head.digest.hex() if self.head else None,
            "heads_compared": self.heads,
        }

    def add(self, faults: Iterable[ChainFault]) -> None:
        """Count faults, and list the first ones."""
        for fault in faults:
            self.fault_count += 1
            if self.broken_at is None or fault.number < self.broken_at.number:
                self.broken_at = fault
            if len(self.faults) < _MAX_FAULTS:
                self.faults.append(fault)


def _fault_json(fault: ChainFault) -> dict[str, Any]:
    return {
        "kind": fault.kind.value,
        "seal": fault.number,
        "row": fault.row.value if fault.row else None,
        "id": str(fault.id) if fault.id else None,
        "message": str(fault),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Evidence:
    """The records of deletions: their ids, the deletions that all of them describe, and those that the sealed ones describe."""

    ids: Set[UUID]
    recorded: Deletions
    sealed: Deletions


@dataclass(frozen=True, kw_only=True, slots=True)
class _Signers:
    """The System Authority's public keys by number: those in use and the retired ones."""

    in_use: Mapping[int, bytes]
    retired: Mapping[int, bytes]

    def after(self, before: Seal | None) -> dict[int, bytes]:
        """Return the keys that may sign the seal after the given one: no retired key after a newer one."""
        oldest = before.key_number if before else 0
        return {**{number: key for number, key in self.retired.items() if number >= oldest}, **self.in_use}


def verify_chain(
    chain: AuditChain,
    *,
    keys: Mapping[int, bytes],
    heartbeat_digests: HeartbeatDigests,
    now: datetime,
    retired: Mapping[int, bytes] | None = None,
    heads: Mapping[int, str] | None = None,
    latest: int | None = None,
) -> ChainReport:
    """Verify the seals of a chain, the rows under them, and the heads that were exported before, by number.

    With `latest`, only that many of the last seals: the seal before them is trusted, and heads before it are not compared.
    `keys` are the System Authority's public keys, each checked against its private half; a seal by one of the `retired` keys needs a later
    seal by one of `keys`. Four statements for a hundred seals. A missing row is explained by the record of a deletion that has not changed
    since it was sealed, or is not sealed yet.
    """
    signers = _Signers(in_use=keys, retired=retired or {})
    before = _seal_before_latest(chain, latest) if latest is not None else None
    forged: set[UUID] = set()
    first = max(before, chain.last_aged(), key=lambda seal: seal.header.number if seal else 0)
    recorded = recorded_deletions(chain, after=first, now=now)
    for _ in range(_MAX_READS):
        unsealed = recorded_deletions(chain, after=chain.head(), now=now).keys()
        evidence = _Evidence(
            ids=recorded.keys(),
            recorded=Deletions(recorded.values()),
            sealed=Deletions(deletion for row_id, deletion in recorded.items() if row_id not in unsealed),
        )
        report = _verify_seals(chain, before, evidence, signers, heartbeat_digests, heads or {})
        # A record that was added or changed after its place was sealed explains nothing.
        forged |= recorded.keys() - report.sealed_deletions - unsealed
        # Rows may have been deleted since the records were read.
        latest_recorded = (
            recorded_deletions(chain, after=first, now=now) if report.faults or forged else recorded
        )
        trusted = {row_id: deletion for row_id, deletion in latest_recorded.items() if row_id not in forged}
        if trusted.keys() == recorded.keys():
            break
        recorded = trusted
    rest = chain.events_after(report.head)
    report.unsealed_events = rest.count()
    oldest = rest.order_by("at").values_list("at", flat=True).first() if report.unsealed_events else None
    report.unsealed_since = oldest
    return report


def _verify_seals(
    chain: AuditChain,
    before: Seal | None,
    evidence: _Evidence,
    signers: _Signers,
    heartbeat_digests: HeartbeatDigests,
    heads: Mapping[int, str],
) -> ChainReport:
    report = ChainReport(chain=chain.name)
    first = before.header.number if before else 0
    exported = {number: digest for number, digest in heads.items() if number > first}
    report.heads = len(exported)
    # The seals by retired keys that no later seal proves.
    unproven: list[int] = []
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
            faults = list(seal_faults(seal, before=before, keys=signers.after(before)))
            report.add(faults)
            if seal.key_number in signers.in_use:
                unproven.clear()
            elif all(fault.kind is not FaultKind.SEAL_FORGED for fault in faults):
                unproven.append(seal.header.number)
            if exported.pop(seal.header.number, seal.digest.hex()) != seal.digest.hex():
                report.add([ChainFault(kind=FaultKind.HEAD_REPLACED, number=seal.header.number)])
            block = blocks.get(row.id)
            if block is None:
                _count_aged_block(report, seal, evidence)
            else:
                _verify_block(report, seal, block, events=events, heartbeats=heartbeats, evidence=evidence)
            before = seal
    report.add(ChainFault(kind=FaultKind.SEAL_FORGED, number=number) for number in unproven)
    report.add(ChainFault(kind=FaultKind.HEAD_REPLACED, number=number) for number in sorted(exported))
    report.head = before
    return report


def _seal_before_latest(chain: AuditChain, latest: int) -> Seal | None:
    """Return the seal before the given number of latest ones, or none."""
    row = chain.seals().order_by("-number")[latest : latest + 1].first()
    return chain.seal_of(row) if row else None


def _count_aged_block(report: ChainReport, seal: Seal, evidence: _Evidence) -> None:
    """Count the rows under a seal whose digests are gone."""
    report.complete_since = None
    if not evidence.recorded.explains_digests(seal):
        report.add([ChainFault(kind=FaultKind.BLOCK_MISSING, number=seal.header.number)])
        return
    rows = seal.header.events + seal.header.heartbeats
    report.aged += rows
    report.aged_unsealed += 0 if evidence.sealed.explains_digests(seal) else rows


def _verify_block(
    report: ChainReport,
    seal: Seal,
    block: Any,
    *,
    events: Mapping[UUID, bytes],
    heartbeats: Mapping[UUID, bytes],
    evidence: _Evidence,
) -> None:
    number = seal.header.number
    report.complete_since = report.complete_since or seal.header.at
    packed, packed_heartbeats = bytes(block.events), bytes(block.heartbeats)
    report.add(block_faults(seal, events=packed, heartbeats=packed_heartbeats))
    recorded, proof = evidence.recorded, evidence.sealed
    sealed_events, sealed_heartbeats = unpack_events(packed), unpack_heartbeats(packed_heartbeats)
    own = {row.id: heartbeats[row.id] for row in sealed_heartbeats if row.id in heartbeats}
    report.sealed_heartbeats |= {row.id for row in sealed_heartbeats}
    report.sealed_deletions |= {
        row.id for row in sealed_events if row.id in evidence.ids and events.get(row.id) == row.digest
    }
    for kind, rows, found, explained, proven in (
        (RowKind.EVENT, sealed_events, events, recorded.explains_event, proof.explains_event),
        (RowKind.HEARTBEAT, sealed_heartbeats, own, recorded.explains_heartbeat, proof.explains_heartbeat),
    ):
        report.add(row_faults(number, kind, sealed=rows, found=found, explained=explained))
        aged = [row for row in rows if row.id not in found and explained(row)]
        report.aged += len(aged)
        report.aged_unsealed += sum(1 for row in aged if not proven(row))
    report.events += sum(1 for row in sealed_events if events.get(row.id) == row.digest)
    report.heartbeats += sum(1 for row in sealed_heartbeats if own.get(row.id) == row.digest)


def _found_events(chain: AuditChain, before: Seal | None, seals: Sequence[Seal]) -> list[dict[UUID, bytes]]:
    """Return for each of the seals the digests of the rows that its positions cover now. One statement."""
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
    ids = [row.id for block in blocks for row in unpack_heartbeats(bytes(block.heartbeats))]
    return digests(chain.tenant_id, ids) if ids and chain.tenant_id else {}
