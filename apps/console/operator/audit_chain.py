"""View of the chain of seals, and the export of the audit log as JSON lines."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_POST, require_safe

from apps.audit.services.export import export_audit
from apps.audit.services.search import AuditFilter
from apps.console.access import access_of, actor_of, has_role
from apps.console.pages.audit_chain import read_chain
from apps.console.views import console_page, refuse
from apps.tenants.models import Role
from arbor.errors import PermissionDenied


@require_safe
def show_chain(request: HttpRequest) -> HttpResponse:
    """Show the latest seals; with `verify=1` verify them and the rows under them."""
    access = access_of(request)
    if access is None:
        raise PermissionDenied("only members of a tenant see its audit log")
    page = read_chain(access.tenant_id, verify=request.GET.get("verify") == "1")
    return console_page(
        request,
        "console/audit_chain.html",
        title="Audit chain",
        page=page,
        may_export=has_role(request, Role.OWNER),
    )


@require_POST
def export_lines(request: HttpRequest) -> HttpResponseBase:
    """Send the tenant's whole audit log as JSON lines; the export is audited."""
    access = access_of(request)
    if access is None or not has_role(request, Role.OWNER):
        return refuse(request, agent_id=None, attempted="export the audit log", needed=Role.OWNER)
    answer = StreamingHttpResponse(
        export_audit(access.tenant_id, wanted=AuditFilter(), actor=actor_of(request)),
        content_type="application/x-ndjson",
    )
    answer["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
    return answer
