"""Administer the tenants of the installation, each act audited."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.db import transaction

from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.fleet.daily_limits import check_daily_limits, is_raised, resume_halted_agents
from apps.fleet.policy import check_own_energy
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import create_tenant, set_status, tenant_by_slug
from arbor.agents.energy import EnergyPolicy, check_terms, terms_of
from arbor.audit.changes import change_of
from arbor.heartbeat.actions import DEFAULT_COSTS


def open_tenant(*, slug: str, name: str, actor: str) -> Tenant:
    """Create a tenant. Raises Invalid for its slug or name, AlreadyExists for its slug."""
    with transaction.atomic(using=OPS):
        tenant = create_tenant(slug=slug, name=name)
        record_platform(
            action=AuditAction.TENANT_CREATED,
            actor=actor,
            message=f"created tenant {slug}",
            detail={"tenant_id": str(tenant.id), "name": name},
        )
    return tenant


def suspend_tenant(*, slug: str, actor: str) -> Tenant:
    """Suspend a tenant; its data stays. Raises NotFound."""
    return _set_status(slug, TenantStatus.SUSPENDED, f"suspended tenant {slug}", actor)


def resume_tenant(*, slug: str, actor: str) -> Tenant:
    """Resume a suspended tenant. Raises NotFound."""
    return _set_status(slug, TenantStatus.ACTIVE, f"resumed tenant {slug}", actor)


def limit_tenant(*, slug: str, limits: Mapping[str, float | Decimal | None], actor: str) -> Tenant:
    """Change a tenant's daily limits (UTC); None is no limit. Agents halted by a lower limit resume.

    `limits` are daily_heartbeats, daily_tokens, daily_usd; unnamed ones stay. Raises NotFound, Invalid.
    """
    check_daily_limits(limits)
    with transaction.atomic(using=OPS):
        tenant = _lock_tenant(slug)
        before = {name: getattr(tenant, name) for name in limits}
        for name, limit in limits.items():
            setattr(tenant, name, limit)
        tenant.save(using=OPS, update_fields=sorted(limits))
        if is_raised(before=before, after=limits):
            resume_halted_agents(tenant_id=tenant.id, using=OPS)
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"changed the daily limits of tenant {slug}",
            detail={"tenant_id": str(tenant.id)},
            change=change_of(before, limits),
        )
    return tenant


def set_tenant_energy(*, slug: str, changes: Mapping[str, Any], actor: str) -> Tenant:
    """Change fields of a tenant's energy policy (`EnergyPolicy`), which its agents inherit; None removes a field.

    Raises NotFound, and Invalid, also where an agent's own policy does not fit.
    """
    with transaction.atomic(using=OPS):
        tenant = _lock_tenant(slug)
        before = EnergyPolicy.model_validate(tenant.energy)
        after = before.changed(changes)
        check_terms(terms_of(after), default_costs=DEFAULT_COSTS)
        with tenant_transaction(tenant.id):
            check_own_energy(after)
        tenant.energy = after.to_json()
        tenant.save(using=OPS, update_fields=["energy"])
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"changed the energy policy of tenant {slug}",
            detail={"tenant_id": str(tenant.id)},
            change=change_of(before.to_json(), tenant.energy),
        )
    return tenant


def _lock_tenant(slug: str) -> Tenant:
    """Lock a tenant's row against other changes, not against rows that refer to the tenant. Raises NotFound."""
    tenant_id = tenant_by_slug(slug).id
    return Tenant.objects.using(OPS).select_for_update(no_key=True).get(id=tenant_id)


def _set_status(slug: str, status: TenantStatus, message: str, actor: str) -> Tenant:
    with transaction.atomic(using=OPS):
        before = _lock_tenant(slug).status
        tenant = set_status(slug=slug, status=status)
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=message,
            detail={"tenant_id": str(tenant.id)},
            change=change_of({"status": before}, {"status": status}),
        )
    return tenant
