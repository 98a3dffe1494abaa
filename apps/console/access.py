"""The tenant, rights and person of a request, as `TenantMiddleware` sets them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import cast

from django.conf import settings
from django.http import HttpRequest

from apps.tenants.models import Role, User
from apps.tenants.services import Access
from arbor.errors import PermissionDenied


class Right(StrEnum):
    """A right of members in a tenant."""

    #: Read its rows.
    VIEW = "view"
    #: Run agents, talk to them, retry what failed.
    OPERATE = "operate"
    #: Decide proposals about the selves of agents.
    APPROVE = "approve"
    #: Administer members and limits, and destroy agents.
    OWN = "own"


#: The least role with each right.
ROLES_WITH_RIGHT: Mapping[Right, Role] = MappingProxyType(
    {
        Right.VIEW: Role.VIEWER,
        Right.OPERATE: Role.OPERATOR,
        Right.APPROVE: Role.OPERATOR,
        Right.OWN: Role.OWNER,
    }
)


def access_of(request: HttpRequest) -> Access | None:
    """Return the request's tenant and role; None without a tenant."""
    return cast("Access | None", getattr(request, "access", None))


def suspended_of(request: HttpRequest) -> Access | None:
    """Return the access that a member of a suspended tenant would have; None for others, and in an active tenant."""
    return cast("Access | None", getattr(request, "suspended", None))


def tenants_of_request(request: HttpRequest) -> list[Access]:
    """Return the tenants of the signed-in person."""
    return cast("list[Access]", getattr(request, "tenants", []))


def has_right(request: HttpRequest, right: Right) -> bool:
    """Return whether the request's role in its tenant has the right."""
    access = access_of(request)
    return access is not None and access.role.rank >= ROLES_WITH_RIGHT[right].rank


def require_member(request: HttpRequest, *, to: str) -> Access:
    """Return the access of a member of the tenant. Raises PermissionDenied, which names what members may do."""
    access = access_of(request)
    if access is None:
        raise PermissionDenied(f"only members of a tenant {to}")
    return access


def is_platform_operator(request: HttpRequest) -> bool:
    """Return whether the signed-in person is a superuser, who runs the whole installation."""
    return isinstance(request.user, User) and request.user.is_active and request.user.is_superuser


def actor_of(request: HttpRequest) -> str:
    """Return the signed-in person as an actor of the audit log."""
    return f"user:{request.user.get_username()}"


def address_of(request: HttpRequest) -> str:
    """Return the IP address of the client, before `ARBOR_PROXIES` proxies; empty if it is not known."""
    proxies: int = settings.ARBOR_PROXIES
    if proxies:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
        # Each proxy appends an address; the client itself may have written the addresses before.
        return str(forwarded[-min(proxies, len(forwarded))]).strip().replace("\0", "")[:64]
    return str(request.META.get("REMOTE_ADDR", ""))[:64]
