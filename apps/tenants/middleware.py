"""Run each web request in one tenant's transaction."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from psycopg.errors import QueryCanceled

from apps.tenants.models import Role, Tenant, User
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tenants.services import Access, tenants_of
from arbor.errors import ArborError, NotFound, TenancyError

#: The session's key for the tenant that its user works in.
SESSION_KEY = "tenant"
#: The session's key for a superuser's visit to a tenant: {tenant, until}.
VISIT_KEY = "visit"


class TenantMiddleware:
    """Runs each request in the transaction of the tenant that the user has chosen, or of their first one.

    A superuser can visit other tenants (`apps.console.views`): a visit is recorded in the audit log and ends after a time.

    Sets `request.access` (tenant and role, or None) and `request.tenants` (those the user may choose from).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request inside the tenant's transaction; an error rolls the transaction back."""
        tenants: list[Access] = tenants_of(request.user) if isinstance(request.user, User) else []
        chosen = request.session.get(SESSION_KEY) if tenants else None
        access = _visit(request) or next(
            (access for access in tenants if str(access.tenant_id) == chosen), tenants[0] if tenants else None
        )
        request.tenants = tenants  # type: ignore[attr-defined]
        request.access = access  # type: ignore[attr-defined]
        if access is None:
            return self.get_response(request)
        with tenant_transaction(access.tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT):
            response = self.get_response(request)
            if response.status_code >= 500:
                transaction.set_rollback(True, using=APP)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Turn errors into pages: 404 for NotFound, 403 for PermissionDenied, 503 for a timeout, else 409."""
        timed_out = isinstance(exception.__cause__, QueryCanceled)
        if not (timed_out or isinstance(exception, ArborError)):
            return None
        if request.access is not None:  # type: ignore[attr-defined]
            transaction.set_rollback(True, using=APP)
        if timed_out:
            return render(request, "console/refused.html", {"message": _too_slow()}, status=503)
        status = (
            404 if isinstance(exception, NotFound) else 403 if isinstance(exception, TenancyError) else 409
        )
        return render(request, "console/refused.html", {"message": str(exception)}, status=status)


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
