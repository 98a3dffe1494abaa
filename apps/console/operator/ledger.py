"""View of the costs of model calls, and of budgets."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.console.access import access_of
from apps.console.pages.ledger import read_ledger
from apps.console.views import console_page
from arbor.errors import PermissionDenied


@require_safe
def show_ledger(request: HttpRequest) -> HttpResponse:
    """Show what models cost by model, agent, purpose or day, and what is left of the day's budgets."""
    if access_of(request) is None:
        raise PermissionDenied("only members of a tenant see what its agents cost")
    page = read_ledger(request.GET)
    return console_page(request, "console/ledger.html", title="Usage and budgets", page=page)
