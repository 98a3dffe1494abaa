"""Export a tenant's audit log as JSON lines, in the order in which it is sealed and up to what may be sealed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.db.models import Q

from apps.audit.models import AuditAction, AuditEvent
from apps.audit.recording import record
from apps.audit.services.chains import AuditChain
from apps.audit.services.positions import audit_horizon
from apps.audit.services.search import AuditFilter
from apps.tenants.scope import tenant_transaction
from arbor.audit.chain import canonical_json
from arbor.audit.changes import json_value

#: Records that are read at once, in a transaction of their own.
_ROWS_AT_ONCE = 1_000


def export_audit(tenant_id: UUID, *, wanted: AuditFilter, actor: str) -> Iterator[str]:
    """Return the wanted records of a tenant in parts of many lines, oldest first, one JSON object a line; the export is audited first.

    No transaction is open between two parts, so a slow reader keeps nobody waiting. Records behind a transaction that may still commit in front of
    them are left for a later export, as they are for a later seal. Raises Invalid for a text that is too long.
    """
    detail = {
        name: value for name, value in json_value(asdict(wanted)).items() if value not in ("", [], None)
    }
    with tenant_transaction(tenant_id):
        wanted.applied(AuditEvent.objects.all())
        record(
            action=AuditAction.AUDIT_EXPORTED, actor=actor, message="exported the audit log", detail=detail
        )
    return _parts(tenant_id, wanted)


def _parts(tenant_id: UUID, wanted: AuditFilter) -> Iterator[str]:
    """Yield parts up to the horizon of the first one: what is added while a reader reads would keep the export from its end."""
    chain = AuditChain(tenant_id=tenant_id)
    horizon: int | None = None
    after: tuple[int, UUID] | None = None
    while True:
        with tenant_transaction(tenant_id):
            horizon = horizon or audit_horizon()
            rows = wanted.applied(AuditEvent.objects.order_by("position", "id")).filter(position__lt=horizon)
            if after is not None:
                position, row_id = after
                rows = rows.filter(
                    Q(position__gt=position) | Q(position=position, id__gt=row_id), position__gte=position
                )
            part = list(rows[:_ROWS_AT_ONCE])
        yield "".join(line_of(chain.exported(row)) for row in part)
        if len(part) < _ROWS_AT_ONCE:
            return
        after = (part[-1].position, part[-1].id)


def line_of(exported: dict[str, Any]) -> str:
    """Return a line of an export: the text that the digest of the record is over, and a line feed."""
    return canonical_json(exported).decode() + "\n"
