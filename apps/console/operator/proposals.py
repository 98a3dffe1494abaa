"""View of the forms that decide proposals, on a proposal's page and its agent's."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from apps.console.access import Right, actor_of, has_right
from apps.console.views import refuse
from apps.selves.services.decisions import ProposalVerdict, decide_proposals
from arbor.errors import Invalid, NotFound
from arbor.ids import read_id


@require_POST
def decide_posted(request: HttpRequest) -> HttpResponse:
    """Decide the posted proposals, and return to the page of the form.

    A button decides one proposal, `one=DECISION:ID`, or all that are checked, `decision=DECISION`.
    """
    if not has_right(request, Right.APPROVE):
        return refuse(request, attempted="decide proposals", right=Right.APPROVE)
    single, _, named = request.POST.get("one", "").partition(":")
    verb = single or request.POST.get("decision", "")
    if verb not in ProposalVerdict:
        raise NotFound(f"the decision must be one of {', '.join(ProposalVerdict)}")
    ids = [read_id(text) for text in ([named] if single else request.POST.getlist("proposal"))]
    try:
        if not ids:
            raise Invalid("choose at least one proposal")
        result = decide_proposals(
            proposal_ids=[proposal_id for proposal_id in ids if proposal_id is not None],
            decision=ProposalVerdict(verb),
            decided_by=actor_of(request),
            reason=request.POST.get("reason", ""),
        )
    except Invalid as refusal:
        messages.error(request, f"Nothing was decided: {refusal}.")
    else:
        (messages.warning if result.refused else messages.success)(request, result.in_words)
    return HttpResponseRedirect(_next(request))


def _next(request: HttpRequest) -> str:
    wanted = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if safe else reverse("admin:selves_proposal_changelist")
