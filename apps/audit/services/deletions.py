"""Record deletions by age, and read the records of deletions, which explain why sealed rows are gone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import BigIntegerField, QuerySet

from apps.audit.models import AuditAction, AuditEvent, AuditPosition, PlatformEvent
from apps.audit.services.chains import AuditChain
from apps.tenants.scope import OPS
from arbor.audit.chain import Seal
from arbor.audit.deletions import DeletedRows, Deletion, deletion_id, read_deletion
from arbor.history import Record

#: The actor of deletions by age.
ACTOR = "system:history"
_RECORDS = {DeletedRows.HEARTBEATS: Record.HEARTBEATS, DeletedRows.DIGESTS: Record.AUDIT}
_NAMES = {DeletedRows.HEARTBEATS: "heartbeats", DeletedRows.DIGESTS: "digests under seals"}


def record_age_deletion(chain: AuditChain, *, rows: DeletedRows, until: datetime, using: str = OPS) -> None:
    """Record a deletion of rows by age in the transaction of one of its steps; all steps with the same `until` share one record."""
    age = settings.ARBOR_HISTORY_AGES[_RECORDS[rows]] or timedelta()
    model: Any = AuditEvent if chain.tenant_id else PlatformEvent
    event = model(
        **chain.owner,
        id=deletion_id(chain.name, rows, until=until, at=until + age),
        action=AuditAction.AUDIT_DELETED,
        actor=ACTOR,
        message=f"deletes {_NAMES[rows]} from before {until:%Y-%m-%d}, by age",
        detail={"rows": rows.value, "until": until.isoformat(), "days": age / timedelta(days=1)},
    )
    QuerySet(model, using=using).bulk_create([event], ignore_conflicts=True)


def recorded_deletions(chain: AuditChain, *, after: Seal | None, now: datetime) -> dict[UUID, Deletion]:
    """Return the deletions that the audit records of a chain after a seal describe, by the records' ids. One statement.

    A time in the future is replaced by now; otherwise a forged record could explain the loss of rows too young to be deleted.
    """
    actions = [AuditAction.AUDIT_DELETED, AuditAction.AGENT_DESTROYED]
    # A position after that of the running transaction is forged, and would never be sealed.
    current = AuditPosition(output_field=BigIntegerField())
    rows = chain.events_after(after).filter(action__in=actions, position__lte=current)
    found = {row.id: _deletion_of(row, at=min(row.at, now)) for row in rows.iterator(chunk_size=1_000)}
    return {row_id: deletion for row_id, deletion in found.items() if deletion}


def _deletion_of(row: Any, *, at: datetime) -> Deletion | None:
    if row.action == AuditAction.AGENT_DESTROYED:
        return Deletion(rows=DeletedRows.HEARTBEATS, at=at, agent_id=getattr(row, "agent_id", None))
    return read_deletion(row.detail, at=at)
