"""The numbers beside entries of the sidebar: unread messages, and pending requests for approval."""

from __future__ import annotations

from django.db.models import IntegerField, Subquery
from django.http import HttpRequest

from apps.authority.services.approvals import waiting_to_count
from apps.console.access import access_of
from apps.contacts.services.inbox import COUNTED_AT_MOST, unread_to_count
from apps.tenants.models import Tenant
from arbor.quotations import bounded_figure


class RowCount(Subquery):
    """The number of rows of a query, including its limit."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


def count_with_badges(request: HttpRequest, *counts: RowCount) -> tuple[int, ...]:
    """Count rows for a page of a tenant, and rows for the badges of its sidebar, in one statement."""
    access = access_of(request)
    assert access is not None
    queries = (*counts, RowCount(unread_to_count().values("pk")), RowCount(waiting_to_count().values("pk")))
    # Django does not send queries that it knows to be empty; their count is None.
    found = [count or 0 for count in Tenant.objects.filter(id=access.tenant_id).values_list(*queries).get()]
    request.badges = found[-2:]  # type: ignore[attr-defined]
    return tuple(found[:-2])


def badges_of(request: HttpRequest) -> dict[str, str]:
    """Return the texts of the badges by the URL name of their page; an empty text for no badge."""
    if access_of(request) is None:
        return {}
    if not hasattr(request, "badges"):
        count_with_badges(request)
    unread, waiting = map(shown_count, request.badges)  # type: ignore[attr-defined]
    return {"inbox": unread, "authority_actionapproval_changelist": waiting}


def shown_count(count: int) -> str:
    """Return a count up to COUNTED_AT_MOST as text, such as "100+"; empty for 0."""
    return bounded_figure(count, COUNTED_AT_MOST) if count else ""
