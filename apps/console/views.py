"""Views that choose, visit and leave a tenant and act on an agent, and the rendering of pages and refusals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from apps.audit.models import AuditAction
from apps.audit.services import record, record_for_both
from apps.console.access import (
    ROLES_WITH_RIGHT,
    Right,
    access_of,
    actor_of,
    has_right,
    is_platform_operator,
    tenants_of_request,
)
from apps.console.acts import carry_out, right_for
from apps.tenants.middleware import SESSION_KEY, VISIT_KEY
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import APP, OPS
from arbor.errors import IdentityRefused, Invalid, NotFound, PermissionDenied
from arbor.ids import read_id


@require_POST
def choose_tenant(request: HttpRequest) -> HttpResponse:
    """Switch to another tenant of the user. Raises NotFound for tenants of others."""
    wanted = request.POST.get("tenant", "")
    if all(str(access.tenant_id) != wanted for access in tenants_of_request(request)):
        raise NotFound("you are not a member of a tenant with that id")
    end_visit(session=request.session)
    request.session[SESSION_KEY] = wanted
    return HttpResponseRedirect(reverse("admin:index"))


@require_POST
def visit_tenant(request: HttpRequest) -> HttpResponse:
    """Begin a superuser's visit to a tenant, with a reason, which is audited."""
    if not is_platform_operator(request):
        raise PermissionDenied("only superusers may visit a tenant")
    tenant_id = read_id(request.POST.get("tenant", ""))
    if tenant_id is None:
        raise NotFound("there is no tenant with that id")
    try:
        tenant = begin_visit(
            session=request.session,
            tenant_id=tenant_id,
            actor=actor_of(request),
            reason=request.POST.get("reason", ""),
        )
    except Invalid as refusal:
        messages.error(request, f"Nothing was opened: {refusal}.")
        return HttpResponseRedirect(reverse("admin:tenants_tenant_changelist"))
    messages.success(request, f"You are visiting {tenant.name} as a viewer. The visit is in its audit log.")
    return HttpResponseRedirect(reverse("admin:index"))


@require_POST
def leave_tenant(request: HttpRequest) -> HttpResponse:
    """End the visit."""
    end_visit(session=request.session)
    return HttpResponseRedirect(reverse("admin:index"))


@require_POST
def act_on_agent(request: HttpRequest, agent_id: UUID) -> HttpResponse:
    """Apply an act to an agent, and redirect to its page with the result."""
    verb = request.POST.get("act", "")
    right = right_for(verb)
    if not has_right(request, right):
        return refuse(request, agent_id=agent_id, attempted=f"{verb} agent {agent_id}", right=right)
    try:
        with transaction.atomic(using=APP):
            act = carry_out(
                verb=verb,
                agent_id=agent_id,
                actor=actor_of(request),
                reason=request.POST.get("reason", ""),
            )
    except (Invalid, IdentityRefused) as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    else:
        messages.success(request, f"The agent {act.done}.")
    return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent_id]))


def console_page(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    """Render a page of the console, with the navigation beside it."""
    request.current_app = admin.site.name
    return TemplateResponse(request, template, {**admin.site.each_context(request), **context})


def posted_text(request: HttpRequest) -> str:
    """Return the posted text; browsers send each of its line breaks as two characters."""
    return request.POST.get("text", "").replace("\r\n", "\n")


#: The most characters of a refused attempt in the audit log, because the refused person chose the text.
ATTEMPT_LENGTH = 200


def refuse(
    request: HttpRequest,
    *,
    attempted: str,
    right: Right = Right.OPERATE,
    agent_id: UUID | None = None,
    message: str = "",
) -> HttpResponse:
    """Answer 403 to a person without a right, and audit the attempt in the tenant, if there is one.

    `message` replaces the text about the role that has the right.
    """
    access, needed = access_of(request), ROLES_WITH_RIGHT[right]
    have = f"you are {access.role}" if access else "you are a member of no tenant"
    if access is not None:
        record(
            action=AuditAction.DENIED,
            actor=actor_of(request),
            agent_id=agent_id,
            message=f"was not allowed to {_bounded(attempted)}",
            detail={"role": access.role.value},
        )
    message = message or (
        f"That needs the role {needed}{'' if needed == Role.OWNER else ' or higher'} in this tenant; {have}."
    )
    return render(request, "console/refused.html", {"message": message}, status=403)


def _bounded(attempt: str) -> str:
    """Return an attempt in ATTEMPT_LENGTH characters, without characters that PostgreSQL or a terminal refuses."""
    printable = "".join(character if character.isprintable() else "\ufffd" for character in attempt)
    return printable if len(printable) <= ATTEMPT_LENGTH else printable[: ATTEMPT_LENGTH - 1] + "…"


#: The duration of a visit.
VISIT_DURATION = timedelta(hours=1)
REASON_LENGTH = 300


def begin_visit(*, session: SessionBase, tenant_id: UUID, actor: str, reason: str) -> Tenant:
    """Begin a visit of the session to a tenant, as a viewer.

    The visit is recorded in the log of the installation and in the tenant's own, where its members can read it.
    Raises NotFound, and Invalid without a reason.
    """
    reason = " ".join(reason.split())
    if not 1 <= len(reason) <= REASON_LENGTH:
        raise Invalid(f"a visit to a tenant needs a reason of 1 to {REASON_LENGTH} characters")
    tenant = Tenant.objects.using(OPS).filter(id=tenant_id).first()
    if tenant is None:
        raise NotFound(f"there is no tenant {tenant_id}")
    record_for_both(
        action=AuditAction.CROSS_TENANT_VIEW,
        tenant_id=tenant.id,
        actor=actor,
        message=f"looks into {tenant.slug}: {reason}",
        detail={"tenant": tenant.slug, "minutes": int(VISIT_DURATION.total_seconds() // 60)},
    )
    session[VISIT_KEY] = {
        "tenant": str(tenant.id),
        "until": (timezone.now() + VISIT_DURATION).isoformat(),
    }
    return tenant


def end_visit(*, session: SessionBase) -> None:
    """End the visit of the session, if any."""
    session.pop(VISIT_KEY, None)
