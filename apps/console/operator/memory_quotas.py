"""Views of memory quotas and promotion candidates, and of the form that pins and unpins memories."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.console.access import actor_of, require_member
from apps.console.pages.memory_quotas import read_memory_quotas
from apps.console.row_acts import RowAct, apply_act
from apps.console.views import console_page
from apps.memories.services.retention.pins import pin, unpin


def _pin(request: HttpRequest, memory_id: UUID) -> str:
    changed = pin(memory_ids=[memory_id], actor=actor_of(request))
    return "The memory is pinned." if changed else "The memory was pinned already."


def _unpin(request: HttpRequest, memory_id: UUID) -> str:
    changed = unpin(memory_ids=[memory_id], actor=actor_of(request))
    return "The memory is unpinned." if changed else "The memory was unpinned already."


_ACTS: Mapping[str, RowAct] = MappingProxyType({"pin": _pin, "unpin": _unpin})


@require_safe
def show_quotas(request: HttpRequest) -> HttpResponse:
    """Show an agent's memories of each type with the quotas, and the facts nearest to a proposal."""
    require_member(request, to="see what its agents remember")
    page = read_memory_quotas(request.GET)
    return console_page(request, "console/memory_quotas.html", title="Memory quotas", page=page)


@require_POST
def act_on_memory(request: HttpRequest, memory_id: UUID) -> HttpResponse:
    """Pin or unpin a memory, and return to its page."""
    refusal = apply_act(request, _ACTS, memory_id, "memory")
    return refusal or HttpResponseRedirect(reverse("admin:memories_memory_change", args=[memory_id]))
