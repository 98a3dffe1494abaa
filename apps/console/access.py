"""Read tenant, role and person from a request, as set by `TenantMiddleware`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import cast

from django.conf import settings
from django.http import HttpRequest

from apps.tenants.models import Role, User
from apps.tenants.services import Access


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
    """Return the suspended tenant that the person would work in; None where it is active."""
    return cast("Access | None", getattr(request, "suspended", None))


def tenants_of_request(request: HttpRequest) -> list[Access]:
    """Return the tenants of the signed-in person."""
    return cast("list[Access]", getattr(request, "tenants", []))


def has_role(request: HttpRequest, needed: Role) -> bool:
    """Return whether the request's role in its tenant has the rights of the needed one."""
    access = access_of(request)
    return access is not None and access.role.rank >= needed.rank


def has_right(request: HttpRequest, right: Right) -> bool:
    """Return whether the request's role in its tenant has the right."""
    return has_role(request, ROLES_WITH_RIGHT[right])


def is_platform_operator(request: HttpRequest) -> bool:
    """Return whether the signed-in person is a superuser, who runs the whole installation."""
    return isinstance(request.user, User) and request.user.is_active and request.user.is_superuser


def actor_of(request: HttpRequest) -> str:
    """Return the signed-in person as an actor of the audit log."""
    return f"user:{request.user.get_username()}"


def address_of(request: HttpRequest) -> str:
    """Return the network address of the person's side, past `ARBOR_PROXIES` proxies; empty where none is known."""
    proxies: int = settings.ARBOR_PROXIES
    if proxies:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
        # Each proxy appends an address; addresses before those of these proxies were written by the client and cannot be trusted.
        return str(forwarded[-min(proxies, len(forwarded))]).strip().replace("\0", "")[:64]
    return str(request.META.get("REMOTE_ADDR", ""))[:64]
