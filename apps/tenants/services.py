"""Create and find tenants and members."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.core.validators import slug_re
from django.db import IntegrityError, transaction

from apps.tenants.models import NAME_LENGTH, SLUG_LENGTH, Membership, Role, Tenant, TenantStatus, User
from apps.tenants.names import list_names, valid_row_name
from apps.tenants.scope import OPS, current_tenant, user_transaction
from arbor.errors import AlreadyExists, Invalid, NotFound, TransitionIllegal


@dataclass(frozen=True, kw_only=True)
class Access:
    """A user's access to a tenant, with the role there."""

    tenant_id: UUID
    slug: str
    name: str
    role: Role
    status: TenantStatus = TenantStatus.ACTIVE
    #: Whether the user is no member but a superuser who visits the tenant.
    visiting: bool = False


def create_tenant(*, slug: str, name: str) -> Tenant:
    """Create a tenant. Raises Invalid for a slug or a name that none can have, AlreadyExists for a slug in use."""
    if len(slug) > SLUG_LENGTH or not slug_re.fullmatch(slug):
        raise Invalid(
            f"a tenant's slug has 1 to {SLUG_LENGTH} characters: letters, digits, hyphens and underscores; got {slug[:200]!r}"
        )
    name = valid_row_name(name, whose="a tenant's", longest=NAME_LENGTH)
    try:
        with transaction.atomic(using=OPS):
            return Tenant.objects.using(OPS).create(slug=slug, name=name)
    except IntegrityError as error:
        raise AlreadyExists(f"there is a tenant {slug!r} already") from error


def tenant_by_slug(slug: str) -> Tenant:
    """Return the tenant. Raises NotFound with the slugs that exist."""
    tenant = Tenant.objects.using(OPS).filter(slug=slug).first()
    if tenant is None:
        known = list_names(Tenant.objects.using(OPS).values_list("slug", flat=True), none="none yet")
        raise NotFound(f"there is no tenant {slug!r}; there is: {known}")
    return tenant


def all_slugs() -> list[str]:
    """Return the slugs of the installation's tenants."""
    return list(Tenant.objects.using(OPS).values_list("slug", flat=True))


def set_status(*, slug: str, status: TenantStatus) -> Tenant:
    """Set the status of a tenant: suspend or resume it."""
    tenant = tenant_by_slug(slug)
    tenant.status = status
    tenant.save(using=OPS, update_fields=["status"])
    return tenant


def require_active() -> None:
    """Raise TransitionIllegal where the current tenant is suspended."""
    tenant: Tenant = Tenant.objects.get(id=current_tenant())
    if tenant.status != TenantStatus.ACTIVE:
        raise TransitionIllegal(f"the tenant {tenant.slug} is suspended; resume it first")


def add_member(*, tenant: Tenant, user: User, role: Role) -> Membership:
    """Make the user a member, or change the role they have."""
    # Not `save()`, which writes through the manager that requires a current tenant.
    Membership.own.using(OPS).bulk_create(
        [Membership(tenant_id=tenant.id, user_id=user.pk, role=role)],
        update_conflicts=True,
        unique_fields=["tenant", "user"],
        update_fields=["role"],
    )
    return Membership.own.using(OPS).get(tenant_id=tenant.id, user_id=user.pk)


def remove_member(*, tenant: Tenant, user: User) -> None:
    """End a membership. Raises NotFound where there is none."""
    ended, _ = Membership.own.using(OPS).filter(tenant_id=tenant.id, user_id=user.pk).delete()
    if not ended:
        raise NotFound(f"{user.username} is no member of {tenant.slug}")


def tenants_of(user: User) -> list[Access]:
    """Return the tenants a user may enter, by slug. One query, under row-level security by user."""
    with user_transaction(user.pk):
        rows = Membership.own.filter(user_id=user.pk).select_related("tenant").order_by("tenant__slug")
        return [
            Access(
                tenant_id=row.tenant_id,
                slug=row.tenant.slug,
                name=row.tenant.name,
                role=Role(row.role),
                status=TenantStatus(row.tenant.status),
            )
            for row in rows
        ]
