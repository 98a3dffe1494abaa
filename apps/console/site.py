"""The operator's console: Django's admin with the Unfold theme."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from unfold.sites import UnfoldAdminSite

from apps.console.access import access_of, is_platform_operator, tenants_of_request
from apps.console.alarms import alarms_of, alarms_of_maintenance
from apps.console.chat_views import chat_with_agent
from apps.console.contact_views import act_on_channel, act_on_message, show_inbox
from apps.console.pages.fleet import read_fleet
from apps.console.views import act_on_agent, choose_tenant, leave_tenant, visit_tenant
from apps.memories.services.jobs.health import read_health


class ConsoleSite(UnfoldAdminSite):  # type: ignore[misc]
    """The admin of an installation."""

    site_title = "Arbor"
    site_header = "Arbor"
    index_title = "Fleet"
    index_template = "console/index.html"
    login_template = "console/login.html"
    enable_nav_sidebar = True

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # Agents are destroyed one at a time, each confirmed by its name.
        self.disable_action("delete_selected")

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Add the URLs of the console's own pages and forms."""
        urls = [
            path("tenant/choose/", self.admin_view(choose_tenant), name="tenant-choose"),
            path("tenant/visit/", self.admin_view(visit_tenant), name="tenant-visit"),
            path("tenant/leave/", self.admin_view(leave_tenant), name="tenant-leave"),
            path("agents/agent/<uuid:agent_id>/chat/", self.admin_view(chat_with_agent), name="agent-chat"),
            path("agents/agent/<uuid:agent_id>/act/", self.admin_view(act_on_agent), name="agent-act"),
        ]
        urls += [
            path("contacts/inbox/", self.admin_view(show_inbox), name="inbox"),
            path(
                "contacts/outboxmessage/<uuid:message_id>/act/",
                self.admin_view(act_on_message),
                name="message-act",
            ),
            path(
                "contacts/channel/<uuid:channel_id>/act/", self.admin_view(act_on_channel), name="channel-act"
            ),
        ]
        return [*urls, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the user's tenant and role, and the tenants to choose from."""
        return {
            **super().each_context(request),
            "access": access_of(request),
            "tenants": tenants_of_request(request),
            "runs_installation": is_platform_operator(request),
            "templates": {"navigation": "console/parts/navigation.html"},
        }

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the fleet of the chosen tenant, or the tenants to choose from."""
        request.current_app = self.name
        fleet = read_fleet() if access_of(request) else None
        alarms = alarms_of(fleet, now=timezone.now()) if fleet else []
        if fleet and is_platform_operator(request):
            alarms += alarms_of_maintenance(read_health())
        context = {
            **self.each_context(request),
            "title": self.index_title,
            "subtitle": None,
            "index": True,
            "fleet": fleet,
            "alarms": alarms,
            **(extra_context or {}),
        }
        return TemplateResponse(request, self.index_template, context)
