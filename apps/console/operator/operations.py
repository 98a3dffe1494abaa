"""Views of the operations page: retry failed calls and messages, and pause agents or suspend tenants after a confirmation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.console.access import Right, access_of, actor_of, has_right, is_platform_operator
from apps.console.live import live_page
from apps.console.pages.operations import read_operations
from apps.console.views import refuse
from apps.contacts.services.outbox import retry_message
from apps.fleet.administration import resume_tenant, suspend_tenant
from apps.fleet.pauses import pause_all_agents, resume_all_agents, resume_all_tenants, suspend_all_tenants
from apps.maintenance.services.recovery import retry_failed_maintenance_calls
from apps.tenants.scope import APP
from apps.tenants.sessions import is_live_request
from arbor.errors import Invalid, NotFound, PermissionDenied
from arbor.ids import read_id
from arbor.quotations import counted

#: The word that confirms an act on the whole installation.
INSTALLATION = "installation"


@require_safe
def show_operations(request: HttpRequest) -> HttpResponse:
    """Show queues, processes, backlogs and failures."""
    access = access_of(request)
    if access is None and not is_platform_operator(request):
        raise PermissionDenied("only members of a tenant see its operations")
    for_installation = is_platform_operator(request) and not is_live_request(request)
    page = read_operations(tenant_id=access.tenant_id if access else None, for_installation=for_installation)
    return live_page(
        request,
        "console/operations.html",
        "console/parts/live_operations.html",
        title="Operations",
        page=page,
        access=access,
        may_operate=has_right(request, Right.OPERATE),
        installation=INSTALLATION,
    )


def _retry_calls(request: HttpRequest) -> str:
    with transaction.atomic(using=APP):
        retried = retry_failed_maintenance_calls(actor=actor_of(request))
    return f"{counted(retried, 'failed maintenance call')} will be retried by the next job run."


def _retry_messages(request: HttpRequest) -> str:
    ids = [read_id(text) for text in request.POST.getlist("message")]
    wanted = sorted(message_id for message_id in ids if message_id is not None)
    if not wanted:
        raise Invalid("choose at least one message")
    with transaction.atomic(using=APP):
        for message_id in wanted:
            retry_message(message_id=message_id, actor=actor_of(request))
    return f"{counted(len(wanted), 'message')} will be retried."


def _pause_all(request: HttpRequest) -> str:
    _confirm(request, _own_slug(request))
    paused = pause_all_agents(actor=actor_of(request), reason=request.POST.get("reason", ""))
    return f"{counted(paused, 'agent')} paused. Running heartbeats end by themselves."


def _resume_all(request: HttpRequest) -> str:
    _confirm(request, _own_slug(request))
    return f"{counted(resume_all_agents(actor=actor_of(request)), 'agent')} resumed."


def _suspend_one(request: HttpRequest) -> str:
    slug = request.POST.get("tenant", "")
    if not slug:
        raise Invalid("choose the tenant to suspend, by its slug")
    _confirm(request, slug)
    suspend_tenant(slug=slug, actor=actor_of(request))
    return f"{slug} is suspended: its agents rest, and its members see a notice."


def _resume_one(request: HttpRequest) -> str:
    slug = request.POST.get("tenant", "")
    resume_tenant(slug=slug, actor=actor_of(request))
    return f"{slug} is resumed."


def _suspend_installation(request: HttpRequest) -> str:
    _confirm(request, INSTALLATION)
    slugs = suspend_all_tenants(actor=actor_of(request), reason=request.POST.get("reason", ""))
    return f"{counted(len(slugs), 'tenant')} suspended."


def _resume_installation(request: HttpRequest) -> str:
    _confirm(request, INSTALLATION)
    return f"{counted(len(resume_all_tenants(actor=actor_of(request))), 'tenant')} resumed."


def _own_slug(request: HttpRequest) -> str:
    access = access_of(request)
    return access.slug if access else ""


def _confirm(request: HttpRequest, name: str) -> None:
    if not name or request.POST.get("confirm", "").strip() != name:
        raise Invalid(f"type {name!r} to confirm")


@dataclass(frozen=True, kw_only=True)
class _OperationsAct:
    """An act of the operations page, which returns the message for the person."""

    run: Callable[[HttpRequest], str]
    #: Whether the act is on tenants of the installation, and so for superusers only.
    is_for_superusers: bool = False


OPERATIONS_ACTS: Mapping[str, _OperationsAct] = MappingProxyType(
    {
        "retry-calls": _OperationsAct(run=_retry_calls),
        "retry-messages": _OperationsAct(run=_retry_messages),
        "pause-all": _OperationsAct(run=_pause_all),
        "resume-all": _OperationsAct(run=_resume_all),
        "suspend-tenant": _OperationsAct(run=_suspend_one, is_for_superusers=True),
        "resume-tenant": _OperationsAct(run=_resume_one, is_for_superusers=True),
        "suspend-all": _OperationsAct(run=_suspend_installation, is_for_superusers=True),
        "resume-all-tenants": _OperationsAct(run=_resume_installation, is_for_superusers=True),
    }
)


@require_POST
def act_on_operations(request: HttpRequest) -> HttpResponse:
    """Run the posted act, and return to the page with its result."""
    name = request.POST.get("act", "")
    act = OPERATIONS_ACTS.get(name)
    if act is None:
        raise NotFound(f"the act must be one of {', '.join(OPERATIONS_ACTS)}")
    attempted = f"{name} on the operations page"
    if act.is_for_superusers and not is_platform_operator(request):
        return refuse(request, attempted=attempted, message="Only superusers suspend and resume tenants.")
    if not act.is_for_superusers and not has_right(request, Right.OPERATE):
        return refuse(request, attempted=attempted)
    try:
        messages.success(request, act.run(request))
    except (Invalid, NotFound) as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    return HttpResponseRedirect(reverse("admin:operations"))
