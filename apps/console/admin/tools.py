"""Pages of MCP servers and their tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from django.contrib import admin

from apps.console import cells, columns
from apps.console.add_pages import AddPageAdmin
from apps.console.listing import FoundByIdAdmin, PageAdmin, filters
from apps.console.operator.tools import NewToolServerForm, read_server, read_tool
from apps.tools.models import Tool, ToolServer
from arbor.adapters.webhook import redact_url

#: The tones of the badges of statuses.
_TONES = {"allowed": "good", "changed": "bad", "missing": "warn"}


@admin.register(ToolServer)
class ToolServerAdmin(AddPageAdmin, PageAdmin, FoundByIdAdmin):
    """List a tenant's MCP servers. Their secrets are never read from the database."""

    page_template = "console/tool_server.html"
    list_display = ("name", "to", "listed", "problem")
    ordering = ("name",)
    deferred = ("sealed_secret",)
    exported_as: ClassVar[Mapping[str, Callable[[Any], Any]]] = MappingProxyType(
        {"url": lambda server: redact_url(server.url)}
    )
    when_empty = "Tools of MCP servers become actions of agents, as far as you allow them."
    when_empty_command = "arbor tool server add --help"

    read_page = staticmethod(read_server)

    new_form = NewToolServerForm
    new_template = "console/tool_server_new.html"
    new_title = "New tool server"

    to = columns.cell("to", lambda server: cells.clipped(redact_url(server.url), 70))
    listed = columns.moment("listed_at", "tools listed")
    problem = columns.error("last_error")


@admin.register(Tool)
class ToolAdmin(PageAdmin, FoundByIdAdmin):
    """List the tools of a tenant's MCP servers."""

    page_template = "console/tool.html"
    list_display = ("action_shown", "status_shown", "cost", "whose", "says", "listed")
    list_filter = filters("status")
    ordering = ("server__name", "name")
    joined = ("server",)
    deferred = ("server__sealed_secret",)
    when_empty = "Add a tool server; its tools appear here."
    when_empty_command = "arbor tool server add --help"

    read_page = staticmethod(read_tool)

    action_shown = columns.cell("action", lambda tool: cells.mono(tool.action))
    status_shown = columns.cell(
        "status", lambda tool: cells.badge(tool.status, _TONES.get(tool.status, "calm"))
    )
    whose = columns.cell("for", lambda tool: "all agents" if tool.for_all else "chosen agents")
    says = columns.cell("its server says", lambda tool: cells.clipped(tool.description or "–", 100))
    listed = columns.moment("listed_at", "listed")
