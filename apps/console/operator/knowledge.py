"""View of quotas and of facts on their way into the self, and the form that pins memories."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.pages.knowledge import read_knowledge
from apps.console.views import console_page, refuse
from apps.memories.services.retention.pins import pin, unpin
from apps.tenants.scope import APP
from arbor.errors import Invalid, LimitReached, NotFound

_ACTS = {"pin": pin, "unpin": unpin}


@require_safe
def show_quotas(request: HttpRequest) -> HttpResponse:
    """Show an agent's memories of each type with the quotas, and the facts nearest to a proposal."""
    require_member(request, to="see what its agents remember")
    page = read_knowledge(request.GET)
    return console_page(request, "console/knowledge.html", title="Memory quotas", page=page)


@require_POST
def act_on_memory(request: HttpRequest, memory_id: UUID) -> HttpResponse:
    """Pin or unpin a memory, and return to its page."""
    verb = request.POST.get("act", "")
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"{verb} memory {memory_id}")
    if verb not in _ACTS:
        raise NotFound(f"the act must be one of {', '.join(_ACTS)}, got {verb!r}")
    try:
        with transaction.atomic(using=APP):
            changed = _ACTS[verb](memory_ids=[memory_id], actor=actor_of(request))
    except (Invalid, LimitReached) as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    else:
        messages.success(
            request, f"The memory is {verb}ned." if changed else f"The memory was {verb}ned already."
        )
    return HttpResponseRedirect(reverse("admin:memories_memory_change", args=[memory_id]))
