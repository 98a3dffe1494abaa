"""Deletions by age, or with an agent, that explain why sealed rows are gone, as audit records state them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any
from uuid import UUID

from arbor.audit.chain import Seal, SealedRow
from arbor.history import MIN_AUDIT_AGE
from arbor.ids import time_of

#: The most time between the time in a heartbeat's id and its start, from which its age counts.
_ID_MARGIN = timedelta(minutes=1)


class DeletedRows(StrEnum):
    """The kinds of rows whose deletion by age is recorded."""

    #: Audit records.
    EVENTS = "audit"
    #: Ended heartbeats.
    HEARTBEATS = "heartbeats"
    #: The digests under seals.
    DIGESTS = "digests"


@dataclass(frozen=True, kw_only=True, slots=True)
class Deletion:
    """A deletion that an audit record states: of rows up to a time, or of an agent with its heartbeats."""

    rows: DeletedRows
    #: The time of the audit record.
    at: datetime
    until: datetime | None = None
    agent_id: UUID | None = None

    @property
    def reaches(self) -> datetime | None:
        """The time up to which the deletion explains missing rows: never later than the database lets rows be deleted."""
        if self.until is None:
            return None
        young = timedelta() if self.rows is DeletedRows.HEARTBEATS else MIN_AUDIT_AGE
        return min(self.until, self.at - young)


def read_deletion(detail: Mapping[str, Any], *, at: datetime) -> Deletion | None:
    """Return the deletion by age that the detail of an audit record states; None for a detail that states none."""
    try:
        rows = DeletedRows(detail.get("rows", DeletedRows.EVENTS))
        until = datetime.fromisoformat(detail["until"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return Deletion(rows=rows, at=at, until=until) if until.tzinfo else None


class Deletions:
    """Recorded deletions, as the explanation of missing rows."""

    def __init__(self, deletions: Iterable[Deletion]) -> None:
        self._until: dict[DeletedRows, datetime] = {}
        self._destroyed: set[UUID] = set()
        for deletion in deletions:
            if deletion.agent_id is not None:
                self._destroyed.add(deletion.agent_id)
            if (reached := deletion.reaches) is not None:
                self._until[deletion.rows] = max(reached, self._until.get(deletion.rows, reached))

    def explains_event(self, row: SealedRow) -> bool:
        """Return whether a deletion by age covers an audit record."""
        return self._covers(DeletedRows.EVENTS, time_of(row.id))

    def explains_heartbeat(self, row: SealedRow) -> bool:
        """Return whether a deletion by age covers a heartbeat, or its agent was destroyed."""
        return row.agent_id in self._destroyed or self._covers(
            DeletedRows.HEARTBEATS, time_of(row.id) - _ID_MARGIN
        )

    def explains_digests(self, seal: Seal) -> bool:
        """Return whether a deletion by age covers the digests under a seal, or the audit records of that time, which have the same age."""
        return self._covers(DeletedRows.DIGESTS, seal.header.at) or self._covers(
            DeletedRows.EVENTS, seal.header.at
        )

    def _covers(self, rows: DeletedRows, at: datetime) -> bool:
        until = self._until.get(rows)
        return until is not None and at <= until


def deletion_id(chain: str, rows: DeletedRows, *, until: datetime, at: datetime) -> UUID:
    """Return the id of the record of a deletion, the same for each of its steps: a version 7 of a time and a digest."""
    digest = int.from_bytes(sha256(f"{chain} {rows} {until.isoformat()}".encode()).digest()[:10])
    fields = (int(at.timestamp() * 1000) << 80) | digest
    # The bits of version and variant.
    return UUID(int=fields & ~(0xF << 76) & ~(0b11 << 62) | (0x7 << 76) | (0b10 << 62))
