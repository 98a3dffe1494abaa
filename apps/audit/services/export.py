"""Export a tenant's audit log as JSON lines, in the order in which it is sealed and up to what may be sealed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction, AuditEvent
from apps.audit.recording import record
from apps.audit.services.chains import AuditChain, rows_after
from apps.audit.services.positions import audit_horizon
from apps.audit.services.search import AuditFilter
from apps.tenants.scope import tenant_transaction
from arbor.audit.chain import canonical_json
from arbor.audit.changes import json_value

#: Records that are read at once, in a transaction of their own.
_ROWS_AT_ONCE = 1_000


def export_audit(tenant_id: UUID, *, wanted: AuditFilter, actor: str) -> Iterator[str]:
    """Record the export in the audit log, and return the wanted records of a tenant, oldest first, as texts of many lines, one JSON object a line.

    No transaction is open between two texts, so a slow reader keeps nobody waiting. Records whose position a running transaction may still
    precede are left for a later export, as they are for a later seal. Raises Invalid for a text that is too long.
    """
    detail = {
        name: value for name, value in json_value(asdict(wanted)).items() if value not in ("", [], None)
    }
    with tenant_transaction(tenant_id):
        # Raises Invalid before anything is recorded.
        wanted.filter_rows(AuditEvent.objects.all())
        record(
            action=AuditAction.AUDIT_EXPORTED, actor=actor, message="exported the audit log", detail=detail
        )
    return _parts(tenant_id, wanted)


def _parts(tenant_id: UUID, wanted: AuditFilter) -> Iterator[str]:
    """Yield texts up to the horizon of the first one: with the records that are added meanwhile, an export might never end."""
    chain = AuditChain(tenant_id=tenant_id)
    horizon: int | None = None
    after: tuple[int, UUID] | None = None
    while True:
        with tenant_transaction(tenant_id):
            horizon = horizon or audit_horizon()
            ordered = AuditEvent.objects.order_by("position", "id")
            rows = wanted.filter_rows(ordered).filter(position__lt=horizon)
            part = list((rows_after(rows, *after) if after else rows)[:_ROWS_AT_ONCE])
        yield "".join(_line(chain.exported(row)) for row in part)
        if len(part) < _ROWS_AT_ONCE:
            return
        after = (part[-1].position, part[-1].id)


def _line(exported: dict[str, Any]) -> str:
    """Return a line of an export: the text from which the record's digest is computed, and a line feed."""
    return canonical_json(exported).decode() + "\n"
