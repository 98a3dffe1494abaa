"""Apply the act of a posted form to a row, such as a channel, a document or a tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from apps.console.access import Right, has_right
from apps.console.views import refuse
from apps.tenants.scope import APP
from arbor.errors import AlreadyExists, CapabilityDenied, Invalid, NotFound, PreconditionFailed

#: Applies an act to the row of an id, and returns a message for the person.
type RowAct = Callable[[HttpRequest, UUID], str]


def apply_act(
    request: HttpRequest, acts: Mapping[str, RowAct], row_id: UUID, noun: str
) -> HttpResponse | None:
    """Apply the posted act to a row, as `run_act` does; return a refusal if the person may not operate."""
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"{request.POST.get('act', '')} {noun} {row_id}")
    run_act(request, acts, row_id)
    return None


def run_act(request: HttpRequest, acts: Mapping[str, RowAct], row_id: UUID) -> None:
    """Run the posted act in a transaction, and add its message, or its refusal, to the next page.

    Raises NotFound for an act that is none of these.
    """
    verb = request.POST.get("act", "")
    if verb not in acts:
        raise NotFound(f"the act must be one of {', '.join(acts)}, got {verb!r}")
    try:
        with transaction.atomic(using=APP):
            message = acts[verb](request, row_id)
    except (Invalid, AlreadyExists, CapabilityDenied, PreconditionFailed) as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    else:
        messages.success(request, message)
