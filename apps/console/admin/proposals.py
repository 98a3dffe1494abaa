"""Pages of proposals, which people with the right to approve decide in place and in bulk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from unfold.forms import ActionForm
from unfold.widgets import UnfoldAdminTextInputWidget

from apps.console import cells, columns
from apps.console.access import Right, actor_of, has_right
from apps.console.listing import AgentRowsAdmin, filters_by_agent
from apps.console.nodes import link_ids
from apps.selves.models import Proposal
from apps.selves.services.changes import REASON_LENGTH
from apps.selves.services.decisions import ProposalVerdict, decide_proposals
from arbor.errors import Invalid
from arbor.selves.proposals import ProposalStatus


class DecisionForm(ActionForm):  # type: ignore[misc]
    """The act to choose for the selected proposals, with a reason."""

    reason = forms.CharField(
        required=False,
        label="",
        max_length=REASON_LENGTH,
        widget=UnfoldAdminTextInputWidget(
            attrs={"placeholder": "Reason (optional)", "aria-label": "Reason", "autocomplete": "off"}
        ),
    )


def _action(decision: ProposalVerdict) -> Callable[..., None]:
    """Return the act of the list that decides the selected proposals."""

    @admin.action(description=f"{decision.value.capitalize()} selected", permissions=["approve"])
    def decide(_admin: Any, request: HttpRequest, selected: QuerySet[Proposal]) -> None:
        try:
            result = decide_proposals(
                proposal_ids=list(selected.order_by().values_list("pk", flat=True)),
                decision=decision,
                decided_by=actor_of(request),
                reason=request.POST.get("reason", ""),
            )
        except Invalid as refusal:
            messages.error(request, f"Nothing was decided: {refusal}.")
        else:
            (messages.warning if result.refused else messages.success)(request, result.in_words)

    decide.__name__ = f"{decision.value}_selected"
    return decide


@admin.register(Proposal)
class ProposalAdmin(AgentRowsAdmin):
    """List proposals, pending and decided."""

    actions: Any = tuple(_action(decision) for decision in ProposalVerdict)
    action_form = DecisionForm
    list_disable_select_all = True
    list_display = (
        "beginning",
        "agent_link",
        "kind",
        "confidence_shown",
        "status_badge",
        "deferrals",
        "came_from",
        "created",
    )
    list_filter = filters_by_agent("kind", "status")
    list_before_template = "console/parts/proposals_waiting.html"
    change_form_outer_before_template = "console/parts/proposal_decision.html"
    text_fields = ("content",)
    fields = (
        "content",
        "agent",
        "kind",
        "confidence_shown",
        "change_shown",
        "evidence_shown",
        "came_from",
        "status",
        "deferrals",
        "reason",
        "who_decided",
        "created_at",
        "decided_at",
    )

    beginning = columns.beginning("content", "proposal")
    confidence_shown = columns.share("confidence", "confidence")
    change_shown = columns.cell("change", lambda proposal: cells.block(columns.as_text(proposal.change)))
    came_from = columns.origin("source", "source")
    who_decided = columns.origin("decided_by", "decided by")
    evidence_shown = columns.cell(
        "evidence",
        lambda proposal: cells.listed(link_ids(proposal.agent_id, list(map(str, proposal.evidence)))),
    )
    created = columns.moment("created_at", "created")

    def has_approve_permission(self, request: HttpRequest) -> bool:
        """Allow the people who may decide proposals."""
        return has_right(request, Right.APPROVE)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a proposal; people who may approve decide it here."""
        context = {**(extra_context or {}), "may_approve": has_right(request, Right.APPROVE)}
        context["pending"] = ProposalStatus.PENDING
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        return response
