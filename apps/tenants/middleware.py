"""Run each web request in one tenant's transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import DataError, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils import timezone
from psycopg.errors import QueryCanceled

from apps.tenants.models import Role, Tenant, TenantStatus, User
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tenants.services import Access, tenants_of
from arbor.errors import ArborError, NotFound, TenancyError

#: The session's key for the tenant that its user works in.
SESSION_KEY = "tenant"
#: The session's key for a superuser's visit to a tenant: {tenant, until}.
VISIT_KEY = "visit"
#: The URL names of the pages that members of a suspended tenant reach.
_OPEN_WHEN_SUSPENDED = frozenset(
    {
        "login",
        "logout",
        "password_change",
        "password_change_done",
        "tenant-choose",
        "own-sessions",
        "jsi18n",
    }
)
#: The URL names of forms whose views open their own transactions, because they call other servers, read files, or read for long.
_OWN_TRANSACTIONS = frozenset({"models-act", "seed-make", "seed-act", "audit-verification"})


class TenantMiddleware:
    """Runs each request in the transaction of the tenant that the user has chosen, or of their first one.

    A superuser can visit other tenants (`apps.console.views`): a visit is recorded in the audit log and ends after a time.

    Sets `request.access` (tenant and role, or None) and `request.tenants` (those the user may choose from). A suspended
    tenant is opened to nobody but visitors: `request.suspended` is the access that its member would have.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request inside the tenant's transaction; an error rolls the transaction back."""
        tenants: list[Access] = tenants_of(request.user) if isinstance(request.user, User) else []
        chosen = request.session.get(SESSION_KEY) if tenants else None
        access = _visit(request) or _choose(tenants, chosen)
        suspended = access is not None and access.status != TenantStatus.ACTIVE and not access.visiting
        request.suspended = access if suspended else None  # type: ignore[attr-defined]
        access = None if suspended else access
        request.tenants = tenants  # type: ignore[attr-defined]
        request.access = access  # type: ignore[attr-defined]
        if access is None or _opens_own_transactions(request):
            return self.get_response(request)
        with tenant_transaction(access.tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT):
            response = self.get_response(request)
            if response.status_code >= 500:
                transaction.set_rollback(True, using=APP)
        return response

    def process_view(
        self, request: HttpRequest, _view: Any, _arguments: Any, _named: Any
    ) -> HttpResponse | None:
        """Answer a member of a suspended tenant with a notice, except on the pages of `_OPEN_WHEN_SUSPENDED`; let superusers pass."""
        suspended: Access | None = request.suspended  # type: ignore[attr-defined]
        match = request.resolver_match
        if suspended is None or (match is not None and match.url_name in _OPEN_WHEN_SUSPENDED):
            return None
        if isinstance(request.user, User) and request.user.is_superuser:
            return None
        return render(request, "console/suspended.html", {"suspended": suspended}, status=403)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Turn errors into pages.

        404 for NotFound, 403 for TenancyError, 400 for a value that no column takes, 503 for a timeout, else 409.
        """
        timed_out = isinstance(exception.__cause__, QueryCanceled)
        unstorable = isinstance(exception, DataError)
        if not (timed_out or unstorable or isinstance(exception, ArborError)):
            return None
        if request.access is not None and connections[APP].in_atomic_block:  # type: ignore[attr-defined]
            transaction.set_rollback(True, using=APP)
        if timed_out:
            return render(request, "console/refused.html", {"message": _too_slow()}, status=503)
        if unstorable:
            return render(request, "console/refused.html", {"message": _UNSTORABLE}, status=400)
        status = (
            404 if isinstance(exception, NotFound) else 403 if isinstance(exception, TenancyError) else 409
        )
        return render(request, "console/refused.html", {"message": str(exception)}, status=status)


def _opens_own_transactions(request: HttpRequest) -> bool:
    if request.method != "POST":
        return False
    try:
        return resolve(request.path_info).url_name in _OWN_TRANSACTIONS
    except Resolver404:
        return False


#: PostgreSQL's own words would quote the value.
_UNSTORABLE = "a value in the address or the form is out of range, or has a character that cannot be stored, such as NUL"


def _choose(tenants: list[Access], chosen: Any) -> Access | None:
    """Return the tenant that was chosen, else the first that is active, else the first."""
    active = [access for access in tenants if access.status == TenantStatus.ACTIVE]
    return next(
        (access for access in tenants if str(access.tenant_id) == chosen),
        next(iter([*active, *tenants]), None),
    )


def _too_slow() -> str:
    limit = settings.ARBOR_PAGE_TIMEOUT.total_seconds()
    return (
        f"The page was stopped: the database needed more than {limit:g} s for it."
        " Choose an agent in the filter, or raise ARBOR_PAGE_TIMEOUT_S."
    )


def _visit(request: HttpRequest) -> Access | None:
    """Return a superuser's access to the visited tenant, as a viewer; None without a current visit."""
    if not (isinstance(request.user, User) and request.user.is_superuser):
        return None
    visit = request.session.get(VISIT_KEY)
    if not visit or datetime.fromisoformat(visit["until"]) < timezone.now():
        return None
    tenant = Tenant.objects.using(OPS).filter(id=visit["tenant"]).first()
    if tenant is None:
        return None
    return Access(tenant_id=tenant.id, slug=tenant.slug, name=tenant.name, role=Role.VIEWER, visiting=True)
