"""Pages of delivery channels."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from apps.console import cells
from apps.console.access import actor_of, holds
from apps.console.channel_form import NewChannelForm
from apps.console.listing import OwnPageAdmin
from apps.contacts.models import Channel
from apps.contacts.services.channels import shown_target
from apps.tenants.models import Role


@admin.register(Channel)
class ChannelAdmin(OwnPageAdmin):
    """A tenant's channels. What signs a webhook's requests is never read from the database here."""

    page_template = "console/channel.html"
    list_display = ("name", "kind", "audience", "whose", "target_shown", "state")
    list_filter = (("kind", ChoicesDropdownFilter), ("audience", ChoicesDropdownFilter))
    ordering = ("name",)
    unread = (*OwnPageAdmin.unread, "sealed_secret")

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let operators add channels."""
        return holds(request, Role.OPERATOR)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Channel]:
        """Leave what is sealed where it is."""
        channels: QuerySet[Channel] = super().get_queryset(request).defer(*self.unread)
        return channels

    def read_page(self, row: Channel) -> Channel:
        """Return the channel: it is all that its page shows."""
        return row

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the channel, with what an operator may do to it."""
        may = {"may_operate": holds(request, Role.OPERATOR)}
        return super().change_view(request, object_id, form_url, {**may, **(extra_context or {})})

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Add a channel. A webhook's secret is shown on the page that answers, and on no other."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = NewChannelForm(request.POST if request.method == "POST" else None)
        made = form.create(actor=actor_of(request)) if form.is_valid() else None
        context = {
            **self.admin_site.each_context(request),
            "title": "New channel",
            "opts": self.opts,
            "form": form,
            "made": made,
        }
        request.current_app = self.admin_site.name
        # The admin lets no page be kept by caches.
        return TemplateResponse(request, "console/channel_new.html", context)

    @admin.display(description="of")
    def whose(self, channel: Channel) -> SafeString | str:
        """Show the channel's agent, or that the channel is the tenant's."""
        if channel.agent_id is None:
            return "all agents"
        return cells.link("agents_agent", channel.agent_id, channel.agent.name)

    @admin.display(description="to")
    def target_shown(self, channel: Channel) -> SafeString:
        """Show the target."""
        return cells.clipped(shown_target(channel) or "the inbox", 70)

    @admin.display(description="state")
    def state(self, channel: Channel) -> SafeString:
        """Show whether the channel is enabled."""
        return cells.badge(
            "enabled" if channel.enabled else "disabled", "good" if channel.enabled else "warn"
        )
