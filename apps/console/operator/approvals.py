"""View of the form that decides a request for approval."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.authority.services.approvals import approve, deny
from apps.console.access import Right, actor_of, has_right
from apps.console.views import refuse
from arbor.errors import Invalid, NotFound
from arbor.ids import read_id

#: The acts of the buttons, with the messages after them.
_DONE = {
    "approve": "Approved: the next heartbeat, due now, executes it once.",
    "always": "Approved, and allowed without asking from now on.",
    "deny": "Denied.",
}


@require_POST
def decide_approval(request: HttpRequest) -> HttpResponse:
    """Decide the posted request, and return to its page. A button posts `one=ACT:ID`: approve, always or deny."""
    if not has_right(request, Right.APPROVE):
        return refuse(request, attempted="decide requests for approval", right=Right.APPROVE)
    act, _, named = request.POST.get("one", "").partition(":")
    approval_id = read_id(named)
    if act not in _DONE or approval_id is None:
        raise NotFound(f"the act must be one of {', '.join(_DONE)}, with the id of a request")
    actor, reason = actor_of(request), request.POST.get("reason", "")
    try:
        if act == "deny":
            deny(approval_id=approval_id, actor=actor, reason=reason)
        else:
            approve(approval_id=approval_id, actor=actor, reason=reason, always=act == "always")
    except Invalid as refusal:
        messages.error(request, f"Nothing was decided: {refusal}.")
    else:
        messages.success(request, _DONE[act])
    return HttpResponseRedirect(reverse("admin:authority_actionapproval_change", args=[approval_id]))
