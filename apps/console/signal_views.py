"""The page of signals, which updates by itself."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from apps.console.access import require_member
from apps.console.export import answer_with_rows
from apps.console.live import live_parts
from apps.console.pages.signals import read_signals_for_export, read_signals_page
from apps.console.views import console_page
from apps.tenants.sessions import is_live_request
from arbor.errors import Invalid

#: The part of the page that is updated.
_ROWS = "console/parts/signal_rows.html"


@require_safe
def show_signals(request: HttpRequest) -> HttpResponseBase:
    """Show the tenant's signals, the latest first; for a request of the page itself, only the rows."""
    require_member(request, to="see its signals")
    refusal = ""
    export = request.GET.get("export")
    values = {name: request.GET.get(name, "").strip() for name in ("agent", "name", "before")}
    if export is not None:
        rows = read_signals_for_export(agent=values["agent"], name=values["name"])
        return answer_with_rows(rows, kind=export, name="signals")
    try:
        page = read_signals_page(**values)
    except Invalid as error:
        refusal, page = str(error), read_signals_page()
    if is_live_request(request):
        return live_parts(request, _ROWS, page=page)
    return console_page(
        request,
        "console/signals.html",
        title="Signals",
        page=page,
        refusal=refusal,
        live_s=page.refresh_s if page.live else 0,
    )
