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
from arbor.errors import Invalid, NotFound, PreconditionFailed

#: Applies an act to the row of an id, and returns a message for the person.
type RowAct = Callable[[HttpRequest, UUID], str]


def apply_act(
    request: HttpRequest, acts: Mapping[str, RowAct], row_id: UUID, noun: str
) -> HttpResponse | None:
    """Apply the posted act to a row and add a message for the next page; return a refusal if the role forbids the act."""
    verb = request.POST.get("act", "")
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted=f"{verb} {noun} {row_id}")
    if verb not in acts:
        raise NotFound(f"the act must be one of {', '.join(acts)}, got {verb!r}")
    try:
        with transaction.atomic(using=APP):
            message = acts[verb](request, row_id)
    except (Invalid, PreconditionFailed) as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
    else:
        messages.success(request, message)
    return None
