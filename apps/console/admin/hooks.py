"""Pages of hooks, and of deliveries at hooks and of webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from apps.console import cells, columns
from apps.console.access import actor_of
from apps.console.add_pages import AddPageAdmin
from apps.console.listing import (
    FoundByIdAdmin,
    OwnPageAdmin,
    PageAdmin,
    filters,
    filters_by_agent,
)
from apps.console.operator.hook_forms import NewHookForm
from apps.console.pages.hooks import latest_deliveries, read_hook
from apps.console.views import console_page
from apps.contacts.models import Hook, HookDelivery
from arbor.contacts.hooks import HOOKS_PATH


@admin.register(Hook)
class HookAdmin(AddPageAdmin, OwnPageAdmin):
    """List a tenant's hooks. Their secrets are never read from the database."""

    page_template = "console/hook.html"
    list_display = ("name", "agent_link", "kind", "wanted", "state", "latest", "result", "refusal")
    list_filter = filters_by_agent("kind")
    ordering = ("name",)
    deferred = (*OwnPageAdmin.deferred, "sealed_secret")
    when_empty = "At a hook, another system such as GitHub posts what an agent should perceive."
    when_empty_command = "arbor contact hook create --help"
    read_page = staticmethod(read_hook)

    def complete(self, rows: Sequence[Any]) -> None:
        """Read the latest delivery at each hook, in one query."""
        found = latest_deliveries([hook.id for hook in rows])
        for hook in rows:
            hook.latest_delivery = found.get(hook.id)

    def add_page(self, request: HttpRequest) -> HttpResponse:
        """Add a hook, or try its mapping. The secret is shown once, in the response."""
        form = NewHookForm(request.POST if request.method == "POST" else None)
        created = trial = None
        if form.is_valid():
            if request.POST.get("act") == "try":
                trial = form.trial()
            else:
                created = form.create(actor=actor_of(request))
        return console_page(
            request,
            "console/hook_new.html",
            title="New hook",
            opts=self.opts,
            form=form,
            created=created,
            trial=trial,
            path=f"{HOOKS_PATH}{created.hook.key}" if created is not None else "",
        )

    wanted = columns.cell("events", lambda hook: cells.clipped(", ".join(hook.events) or "all", 60))
    state = columns.cell(
        "state", lambda hook: cells.badge("on" if hook.active else "off", "good" if hook.active else "warn")
    )
    latest = columns.cell(
        "last delivery",
        lambda hook: cells.when(hook.latest_delivery.at) if hook.latest_delivery else "none yet",
    )
    result = columns.cell(
        "result", lambda hook: cells.badge(hook.latest_delivery.status) if hook.latest_delivery else "–"
    )
    refusal = columns.moment("refused_at", "last refusal")


@admin.register(HookDelivery)
class HookDeliveryAdmin(PageAdmin, FoundByIdAdmin):
    """List deliveries at hooks and of webhooks."""

    page_template = "console/delivery.html"
    list_display = ("what", "of", "direction", "status_badge", "attempts", "when", "tried", "problem")
    list_filter = filters("status")
    linked_lookups = frozenset({"hook__id__exact", "webhook__id__exact"})
    ordering = ("-at",)
    sortable_by = ()
    joined = ("hook", "webhook")
    deferred = ("hook__sealed_secret", "webhook__sealed_secret")
    deferred_in_list = ("body",)
    when_empty = "Each request with a valid signature at a hook, and each request of a webhook, is listed here until it reaches its age."

    @admin.display(description="of")
    def of(self, delivery: HookDelivery) -> SafeString:
        """Link the hook or the webhook."""
        if delivery.hook is not None:
            return cells.link("contacts_hook", delivery.hook.id, delivery.hook.name)
        assert delivery.webhook is not None
        return cells.link("contacts_signalwebhook", delivery.webhook.id, delivery.webhook.name)

    what = columns.cell(
        "event", lambda delivery: cells.clipped(delivery.event or delivery.delivery_id or "unknown", 70)
    )
    direction = columns.cell("direction", lambda delivery: "in" if delivery.hook_id else "out")
    status_badge = columns.badge("status", "status")
    when = columns.moment("at", "received or sent")
    tried = columns.moment("tried_at", "last attempt")
    problem = columns.error("error")
