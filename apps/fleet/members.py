"""Administer the members of tenants; each act is audited for the installation and for the tenant."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from apps.audit.models import AuditAction
from apps.audit.services import record_for_both
from apps.fleet.accounts import account_by_name
from apps.tenants.models import Membership, Role, Tenant, User
from apps.tenants.scope import OPS
from apps.tenants.services import add_member, remove_member, tenant_by_slug
from arbor.audit.changes import change_of
from arbor.errors import NotFound, TransitionIllegal


def set_member_role(*, slug: str, username: str, role: Role, actor: str) -> Membership:
    """Give an account a role in a tenant, or change its role.

    Raises NotFound for either, TransitionIllegal where the tenant's last owner would get another role.
    """
    tenant, user = tenant_by_slug(slug), account_by_name(username)
    with transaction.atomic(using=OPS):
        if role != Role.OWNER:
            _require_another_owner(tenant, user)
        before = Membership.own.using(OPS).filter(tenant_id=tenant.id, user_id=user.pk).first()
        membership = add_member(tenant=tenant, user=user, role=role)
        record_for_both(
            action=AuditAction.MEMBER_ADDED,
            tenant_id=tenant.id,
            actor=actor,
            message=f"{user.username} is {role} of tenant {slug}",
            detail={"tenant_id": str(tenant.id), "user": user.username, "role": role.value},
            change=change_of({"role": before.role} if before else {}, {"role": role}),
        )
    return membership


def dismiss_member(*, slug: str, username: str, actor: str) -> None:
    """End the membership of an account; its open pages show the tenant no more.

    Raises NotFound for the tenant, the account and the membership, TransitionIllegal for the tenant's last owner.
    """
    tenant, user = tenant_by_slug(slug), account_by_name(username)
    with transaction.atomic(using=OPS):
        _require_another_owner(tenant, user)
        before = Membership.own.using(OPS).filter(tenant_id=tenant.id, user_id=user.pk).first()
        remove_member(tenant=tenant, user=user)
        record_for_both(
            action=AuditAction.MEMBER_REMOVED,
            tenant_id=tenant.id,
            actor=actor,
            message=f"{user.username} is no longer a member of tenant {slug}",
            detail={"tenant_id": str(tenant.id), "user": user.username},
            change=change_of({"role": before.role} if before else {}, {}),
        )


def username_of_member(*, slug: str, membership_id: UUID) -> str:
    """Return the username of a tenant's member. Raises NotFound."""
    tenant = tenant_by_slug(slug)
    members = Membership.own.using(OPS).filter(tenant_id=tenant.id, id=membership_id)
    username: str | None = members.values_list("user__username", flat=True).first()
    if username is None:
        raise NotFound(f"{slug} has no member {membership_id}")
    return username


def _require_another_owner(tenant: Tenant, user: User) -> None:
    # The rows are locked: two owners who remove each other at the same time leave one.
    owners = Membership.own.using(OPS).select_for_update().filter(tenant_id=tenant.id, role=Role.OWNER)
    if list(owners.order_by("id").values_list("user_id", flat=True)) == [user.pk]:
        raise TransitionIllegal(
            f"{user.username} is the last owner of {tenant.slug}; make somebody else an owner first"
        )
