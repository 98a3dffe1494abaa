"""Administer the installation: tenants, accounts and memberships, each act audited."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from apps.audit.models import AuditAction
from apps.audit.services import record_platform
from apps.fleet.daily_limits import is_raised, resume_halted_agents
from apps.tenants.models import Membership, Role, Tenant, TenantStatus, User
from apps.tenants.scope import OPS
from apps.tenants.services import add_member, create_tenant, set_status, tenant_by_slug
from arbor.errors import AlreadyExists, Invalid, NotFound


def open_tenant(*, slug: str, name: str, actor: str) -> Tenant:
    """Create a tenant. Raises Invalid for its slug, AlreadyExists."""
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


#: The largest limits of a tenant, by the size of the columns.
_MOST = {"daily_beats": 2**31 - 1, "daily_tokens": 10**15, "daily_usd": 10**8 - 1}
_WORDS = {"daily_beats": "heartbeats", "daily_tokens": "tokens", "daily_usd": "US dollars"}


def limit_tenant(*, slug: str, limits: Mapping[str, int | Decimal | None], actor: str) -> Tenant:
    """Change a tenant's daily limits (UTC); None is no limit. Agents halted by a lower limit resume.

    `limits` are daily_beats, daily_tokens, daily_usd; unnamed ones stay. Raises NotFound, Invalid.
    """
    for name, limit in limits.items():
        if name not in _MOST:
            raise Invalid(f"a tenant's limits are {', '.join(_MOST)}, got {name!r}")
        if limit is not None and not (math.isfinite(limit) and 0 <= limit <= _MOST[name]):
            what = _WORDS[name]
            raise Invalid(f"a tenant's limit of {what} a day is 0 to {_MOST[name]:,}, or none, got {limit}")
    tenant = tenant_by_slug(slug)
    before = {name: getattr(tenant, name) for name in limits}
    with transaction.atomic(using=OPS):
        for name, limit in limits.items():
            setattr(tenant, name, limit)
        tenant.save(using=OPS, update_fields=sorted(limits))
        if is_raised(before=before, after=limits):
            resume_halted_agents(tenant_id=tenant.id, using=OPS)
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"limited what tenant {slug} may use in a day",
            detail={
                "tenant_id": str(tenant.id),
                "before": {name: None if value is None else str(value) for name, value in before.items()},
                "after": {name: None if value is None else str(value) for name, value in limits.items()},
            },
        )
    return tenant


def admit_member(*, slug: str, username: str, role: Role, actor: str) -> Membership:
    """Give an account a role in a tenant, or change its role. Raises NotFound for either."""
    tenant = tenant_by_slug(slug)
    user = User.objects.using(OPS).filter(username=username).first()
    if user is None:
        raise NotFound(
            f"there is no account {username!r}; create it with `arbor tenant user create {username}`"
        )
    with transaction.atomic(using=OPS):
        membership = add_member(tenant=tenant, user=user, role=role)
        record_platform(
            action=AuditAction.MEMBER_ADDED,
            actor=actor,
            message=f"{username} is {role} of tenant {slug}",
            detail={"tenant_id": str(tenant.id), "user": username, "role": role.value},
        )
    return membership


def create_account(*, username: str, password: str, actor: str, superuser: bool = False) -> User:
    """Create an account that may sign in to the console; its memberships decide its rights in tenants.

    A superuser runs the installation as a whole. Raises Invalid for the name or a password that is too easy to guess,
    AlreadyExists.
    """
    if not username.strip():
        raise Invalid("an account needs a name to sign in with; this one is empty")
    user = User(username=username, is_staff=True, is_superuser=superuser)
    try:
        user.clean_fields(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages)) from error
    if User.objects.using(OPS).filter(username__iexact=username).exists():
        raise AlreadyExists(f"there is an account {username!r} already")
    user.set_password(password)
    with transaction.atomic(using=OPS):
        user.save(using=OPS, force_insert=True)
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"created account {username}",
            detail={"user": username, "superuser": superuser},
        )
    return user


def _set_status(slug: str, status: TenantStatus, message: str, actor: str) -> Tenant:
    with transaction.atomic(using=OPS):
        tenant = set_status(slug=slug, status=status)
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=message,
            detail={"tenant_id": str(tenant.id), "status": status.value},
        )
    return tenant
