"""Record acts in the audit log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.tenants.scope import OPS, current_tenant, ops_scope
from arbor.audit.changes import AuditChange
from arbor.audit.levels import AuditLevel, level_of

#: The first word of the audit message where a view of all tenants looks up one name or id.
LOOKUP_VERB = "finding"


def build_event(
    *,
    tenant_id: UUID,
    action: AuditAction,
    actor: str,
    message: str,
    agent_id: UUID | None = None,
    detail: Mapping[str, Any] | None = None,
    change: AuditChange | None = None,
    level: AuditLevel | None = None,
) -> AuditEvent:
    """Return an unsaved record of an act; without `level`, it has the level of its kind of act."""
    return AuditEvent(
        tenant_id=tenant_id,
        agent_id=agent_id,
        **_columns(action, actor, message, detail, change, level),
    )


def record(
    *,
    action: AuditAction,
    actor: str,
    message: str,
    agent_id: UUID | None = None,
    detail: Mapping[str, Any] | None = None,
    change: AuditChange | None = None,
    level: AuditLevel | None = None,
) -> AuditEvent:
    """Record an act of the current tenant, in the transaction of the act itself; `change`: what the act changed."""
    event = build_event(
        tenant_id=current_tenant(),
        action=action,
        actor=actor,
        message=message,
        agent_id=agent_id,
        detail=detail,
        change=change,
        level=level,
    )
    event.save(force_insert=True)
    return event


def record_platform(
    *,
    action: AuditAction,
    actor: str,
    message: str,
    detail: Mapping[str, Any] | None = None,
    change: AuditChange | None = None,
    using: str = OPS,
) -> None:
    """Record an act on the installation as a whole, through the connection of the act itself."""
    event = PlatformEvent(**_columns(action, actor, message, detail, change))
    event.save(using=using, force_insert=True)


def record_for_both(
    *,
    action: AuditAction,
    tenant_id: UUID,
    actor: str,
    message: str,
    detail: Mapping[str, Any],
    change: AuditChange | None = None,
) -> None:
    """Record an act on a tenant, such as a visit from outside, for the installation and for the tenant."""
    event = build_event(
        tenant_id=tenant_id, action=action, actor=actor, message=message, detail=detail, change=change
    )
    with transaction.atomic(using=OPS):
        record_platform(action=action, actor=actor, message=message, detail=detail, change=change)
        _insert_through_operations(event)


def record_refusal(
    *, action: AuditAction, actor: str, message: str, agent_id: UUID, detail: Mapping[str, Any]
) -> None:
    """Record a refused act of the current tenant at once: the error that follows rolls the transaction of the act back."""
    event = build_event(
        tenant_id=current_tenant(),
        action=action,
        actor=actor,
        message=message,
        agent_id=agent_id,
        detail=detail,
    )
    _insert_through_operations(event)


def _insert_through_operations(event: AuditEvent) -> None:
    """Insert a record through the operations role, whatever the current tenant is."""
    rows: QuerySet[AuditEvent] = QuerySet(AuditEvent, using=OPS)
    rows.bulk_create([event])


def _columns(
    action: AuditAction,
    actor: str,
    message: str,
    detail: Mapping[str, Any] | None,
    change: AuditChange | None,
    level: AuditLevel | None = None,
) -> dict[str, Any]:
    return {
        "action": action,
        "actor": actor,
        "message": message,
        "level": (level or level_of(action)).value,
        "detail": dict(detail or {}),
        "before": dict(change.before) if change else {},
        "after": dict(change.after) if change else {},
    }


@contextmanager
def across_tenants(*, actor: str, reason: str) -> Iterator[None]:
    """Open a view of all tenants through the operations role; the audit log records the view before anything is read."""
    record_platform(action=AuditAction.CROSS_TENANT_VIEW, actor=actor, message=reason)
    with ops_scope():
        yield
