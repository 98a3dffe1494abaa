"""View of the form that decides a request for approval."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.authority.services.approvals import approve, deny, describe_execution
from apps.console.access import Right, actor_of, has_right
from apps.console.views import refuse
from arbor.errors import Invalid, NotFound
from arbor.ids import read_id

#: The acts of the buttons.
_ACTS = ("approve", "always", "deny")


@require_POST
def decide_approval(request: HttpRequest) -> HttpResponse:
    """Decide the posted request, and return to its page. A button posts `one=ACT:ID`: approve, always or deny."""
    if not has_right(request, Right.APPROVE):
        return refuse(request, attempted="decide requests for approval", right=Right.APPROVE)
    act, _, named = request.POST.get("one", "").partition(":")
    approval_id = read_id(named)
    if act not in _ACTS or approval_id is None:
        raise NotFound(f"the act must be one of {', '.join(_ACTS)}, with the id of a request")
    try:
        done = _decide(act, approval_id, actor=actor_of(request), reason=request.POST.get("reason", ""))
    except Invalid as refusal:
        messages.error(request, f"Nothing was decided: {refusal}.")
    else:
        messages.success(request, done)
    return HttpResponseRedirect(reverse("admin:authority_actionapproval_change", args=[approval_id]))


def _decide(act: str, approval_id: UUID, *, actor: str, reason: str) -> str:
    """Decide a request, and return the message for the person. Raises NotFound, Invalid."""
    if act == "deny":
        deny(approval_id=approval_id, actor=actor, reason=reason)
        return "Denied."
    row = approve(approval_id=approval_id, actor=actor, reason=reason, always=act == "always")
    allowed = " From now on it is allowed without asking." if act == "always" else ""
    return f"Approved: {describe_execution(row)}.{allowed}"
