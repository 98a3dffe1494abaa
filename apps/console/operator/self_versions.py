"""The page of an agent's self with its versions, and the form that rolls it back."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.pages.self_versions import parse_version, read_self_versions
from apps.console.views import console_page, refuse
from apps.selves.services.changes import REASON_LENGTH
from apps.selves.services.rollback import roll_back
from apps.tenants.scope import APP
from arbor.errors import Invalid, NotFound
from arbor.ids import read_id
from arbor.quotations import counted
from arbor.selves.history import PartKind


@require_safe
def show_self_versions(request: HttpRequest) -> HttpResponse:
    """Show an agent's traits, values and capabilities, its versions, and one version compared with today."""
    require_member(request, to="see the selves of its agents")
    page = read_self_versions(request.GET)
    return console_page(
        request,
        "console/self_versions.html",
        title="Self versions",
        page=page,
        reason_length=REASON_LENGTH,
        may_approve=has_right(request, Right.APPROVE),
    )


@require_POST
def roll_back_posted(request: HttpRequest) -> HttpResponse:
    """Roll the posted agent's self back to the posted version, and return to its page."""
    agent_id = read_id(request.POST.get("agent", ""))
    if not has_right(request, Right.APPROVE):
        return refuse(request, agent_id=agent_id, attempted="roll a self back", right=Right.APPROVE)
    version, parts = parse_version(request.POST.get("version", "")), request.POST.getlist("part")
    if agent_id is None or version is None or not set(parts) <= set(PartKind):
        raise NotFound("a rollback names an agent, a version, and parts of its self")
    try:
        if not parts:
            raise Invalid("choose at least one part of the self")
        with transaction.atomic(using=APP):
            result = roll_back(
                agent_id=agent_id,
                to=version,
                actor=actor_of(request),
                reason=request.POST.get("reason", ""),
                parts=[PartKind(part) for part in parts],
            )
    except Invalid as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    else:
        count = len(result.differences)
        done = f"Version {result.to} is restored: {counted(count, 'change')}, version {result.version}."
        messages.success(request, done if count else f"The self is as at version {result.to} already.")
    return HttpResponseRedirect(f"{reverse('admin:self-versions')}?agent={agent_id}")
