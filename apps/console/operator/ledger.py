"""View of the costs of model calls, and of budgets."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from apps.console.access import require_member
from apps.console.export import answer_with_rows
from apps.console.pages.ledger import GROUPS_SHOWN, read_ledger
from apps.console.views import console_page
from arbor.errors import NotFound


@require_safe
def show_ledger(request: HttpRequest) -> HttpResponseBase:
    """Show the costs of calls by model, agent, purpose or day, and the rest of the day's budgets."""
    require_member(request, to="see what its agents cost")
    export = request.GET.get("export")
    # A file has all groups; the page says that there are more.
    page = read_ledger(request.GET, max_groups=GROUPS_SHOWN if export is None else None)
    if export is not None:
        if page.agent is None and request.GET.get("agent"):
            # A file of the whole tenant would not say so, as the page does.
            raise NotFound("there is no such agent; write its name or id")
        return answer_with_rows([group.as_row(page.by) for group in page.groups], kind=export, name="usage")
    return console_page(request, "console/ledger.html", title="Usage and budgets", page=page)
