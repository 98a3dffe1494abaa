"""Visits of the installation's operators to other tenants: with a reason, for a limited time, audited."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone

from apps.audit.services import record_look
from apps.tenants.middleware import VISIT_KEY
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS
from arbor.errors import Invalid, NotFound

#: The duration of a visit.
VISIT_LASTS = timedelta(hours=1)
REASON_LENGTH = 300


def begin_visit(*, session: SessionBase, tenant_id: UUID, actor: str, reason: str) -> Tenant:
    """Let the session look into the tenant, as a viewer.

    It is recorded on the installation's side and in the tenant's own audit, where its people can read it.
    Raises NotFound, and Invalid without a reason.
    """
    reason = " ".join(reason.split())
    if not 1 <= len(reason) <= REASON_LENGTH:
        raise Invalid(f"a look into a tenant needs a reason of 1 to {REASON_LENGTH} characters")
    tenant = Tenant.objects.using(OPS).filter(id=tenant_id).first()
    if tenant is None:
        raise NotFound(f"there is no tenant {tenant_id}")
    record_look(
        tenant_id=tenant.id,
        actor=actor,
        message=f"looks into {tenant.slug}: {reason}",
        detail={"tenant": tenant.slug, "minutes": int(VISIT_LASTS.total_seconds() // 60)},
    )
    session[VISIT_KEY] = {
        "tenant": str(tenant.id),
        "until": (timezone.now() + VISIT_LASTS).isoformat(),
    }
    return tenant


def end_visit(*, session: SessionBase) -> None:
    """Close the tenant again."""
    session.pop(VISIT_KEY, None)
