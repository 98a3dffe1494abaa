"""The audit log: who did what, and the chain that proves it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, get, listed, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class AuditEvent:
    """An audited act."""

    id: UUID
    at: datetime
    #: info, warning or error.
    level: str
    action: str
    actor: str
    agent_id: UUID | None
    message: str
    detail: Any
    #: The changed fields with their values before and after the act.
    before: Any
    after: Any


@dataclass(frozen=True, kw_only=True)
class ChainFault:
    """A broken link of the chain."""

    kind: str
    #: The number of the seal.
    seal: int
    row: str | None
    id: UUID | None
    message: str


@dataclass(frozen=True, kw_only=True)
class ChainReport:
    """The result of a verification of the chain."""

    chain: str
    intact: bool
    #: The first broken link.
    broken_at: ChainFault | None
    faults: list[ChainFault]
    fault_count: int
    seals: int
    events: int
    heartbeats: int
    #: Rows that were deleted by age, or with their agent.
    aged: int
    #: Aged rows whose deletion is recorded, but not sealed yet.
    aged_unsealed: int
    unsealed_events: int
    unsealed_heartbeats: int
    unsealed_since: datetime | None
    head: str | None


@dataclass(frozen=True, kw_only=True)
class ChainHead:
    """The last seal of the chain, as it is exported."""

    chain: str
    number: int
    at: datetime
    previous: str
    position: int
    last_id: str
    events: int
    events_digest: str
    cursor: str
    heartbeats: int
    heartbeats_digest: str
    digest: str
    key: int
    signature: str


class Audit[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about the audit log."""

    @listing
    def list(
        self,
        *,
        words: str = "",
        actor: str = "",
        action: str | None = None,
        level: str | None = None,
        agent_id: Id | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> PagedCall[AuditEvent]:
        """List or search the audited acts of the tenant, the latest first."""
        return listed(
            AuditEvent,
            "/audit",
            words=words,
            actor=actor,
            action=action,
            level=level,
            agent_id=agent_id,
            since=since,
            until=until,
            limit=limit,
        )

    @operation
    def get(self, event_id: Id) -> Call[AuditEvent]:
        """Return an act with its detail and its changes."""
        return get(AuditEvent, f"/audit/{segment(event_id)}")

    @operation
    def export(
        self,
        *,
        words: str = "",
        actor: str = "",
        action: str | None = None,
        level: str | None = None,
        agent_id: Id | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Call[bytes]:
        """Return acts as the bytes of a file of JSON lines, oldest first."""
        query = {
            "words": words,
            "actor": actor,
            "action": action,
            "level": level,
            "agent_id": agent_id,
            "since": since,
            "until": until,
        }
        return Call(method="GET", path="/audit/export", parse=bytes, query=query, answers_file=True)

    @operation
    def verify(self, *, latest: int | None = None) -> Call[ChainReport]:
        """Verify the latest seals and the rows under them."""
        return get(ChainReport, "/audit/chain", latest=latest)

    @operation
    def head(self) -> Call[ChainHead]:
        """Return the last seal, to store it where nobody can change it."""
        return get(ChainHead, "/audit/head")
