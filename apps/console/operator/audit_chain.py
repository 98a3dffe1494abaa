"""View and verification of the chain of seals, and the export of the audit log as JSON lines."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST, require_safe

from apps.audit.services.chains import AuditChain
from apps.audit.services.export import export_audit
from apps.audit.services.search import AuditFilter
from apps.audit.services.verification import ChainReport
from apps.console.access import Right, access_of, actor_of, has_right, require_member
from apps.console.pages.audit_chain import read_chain
from apps.console.views import console_page, refuse
from apps.fleet.audit_seals import verify_audit
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import Access

#: Seals that a page verifies at most: the command verifies all.
SEALS_VERIFIED = 1_000


@require_safe
def show_chain(request: HttpRequest) -> HttpResponse:
    """Show the latest seals."""
    access = require_member(request, to="see its audit log")
    return _page(request, access, report=None)


@require_POST
def verify_seals(request: HttpRequest) -> HttpResponse:
    """Verify the latest seals and the rows under them, for owners, because this reads the log of the whole tenant.

    The middleware opens no transaction for this view, which may read for long.
    """
    access = require_member(request, to="see its audit log")
    if not has_right(request, Right.OWN):
        with tenant_transaction(access.tenant_id):
            return refuse(request, attempted="verify the audit log", right=Right.OWN)
    report = verify_audit(AuditChain(tenant_id=access.tenant_id), latest=SEALS_VERIFIED)
    with tenant_transaction(access.tenant_id):
        # The navigation reads rows of the tenant, whose transaction ends here.
        return cast("HttpResponse", _page(request, access, report=report).render())  # type: ignore[attr-defined]


def _page(request: HttpRequest, access: Access, *, report: ChainReport | None) -> HttpResponse:
    return console_page(
        request,
        "console/audit_chain.html",
        title="Audit chain",
        page=read_chain(access.tenant_id),
        report=report,
        verified=SEALS_VERIFIED,
        is_owner=has_right(request, Right.OWN),
    )


@require_POST
def export_audit_log(request: HttpRequest) -> HttpResponseBase:
    """Send the tenant's whole audit log as JSON lines; the export is audited."""
    access = access_of(request)
    if access is None or not has_right(request, Right.OWN):
        return refuse(request, attempted="export the audit log", right=Right.OWN)
    answer = StreamingHttpResponse(
        export_audit(access.tenant_id, wanted=AuditFilter(), actor=actor_of(request)),
        content_type="application/x-ndjson",
    )
    answer["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    return answer
