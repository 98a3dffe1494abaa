"""Pages and forms of MCP servers and their tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from apps.agents.models import Agent
from apps.console.access import actor_of
from apps.console.forms import ServiceForm
from apps.console.row_acts import RowAct, apply_act
from apps.tools.models import Tool, ToolServer
from apps.tools.services.servers import SECRET_LENGTH, URL_LENGTH, add_server, enqueue_refresh, remove_server
from apps.tools.services.tools import agents_of_tool, allow_tool, deny_tool
from arbor.errors import AlreadyExists, Invalid
from arbor.ids import read_id
from arbor.tools.names import SERVER_LENGTH
from arbor.tools.schemas import describe_arguments
from arbor.tools.status import SUSPENDED, ToolStatus

#: The most agents that the form of a tool offers, beside those that may call it already.
_AGENTS_OFFERED = 200


@dataclass(frozen=True, kw_only=True)
class ServerPage:
    """A server and its tools."""

    server: ToolServer
    tools: list[Tool]


@dataclass(frozen=True, kw_only=True)
class ToolPage:
    """A tool, what was allowed of it, and the agents that may call it."""

    tool: Tool
    arguments: list[str]
    before_arguments: list[str]
    agents: list[str]
    #: [(id, name, whether it is chosen)].
    offered: list[tuple[UUID, str, bool]]
    is_suspended: bool
    may_be_allowed: bool


class NewToolServerForm(ServiceForm):
    """The form of a new server."""

    name = forms.CharField(
        max_length=SERVER_LENGTH,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Lower-case letters, digits and hyphens; a part of the names of actions.",
    )
    url = forms.CharField(
        label="URL",
        max_length=URL_LENGTH,
        widget=UnfoldAdminTextInputWidget(),
        help_text="Its address, of streamable HTTP, such as https://example.org/mcp.",
    )
    secret = forms.CharField(
        required=False,
        max_length=SECRET_LENGTH,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "off"}),
        help_text="The bearer token of its requests, if it asks for one. It is stored sealed and never shown.",
    )

    def create(self, *, actor: str) -> ToolServer | None:
        """Add the server and enqueue the listing of its tools; None, with the reason in the form's errors, if refused."""
        with self.refusals(Invalid, AlreadyExists):
            server = add_server(**self.cleaned_data, actor=actor)
            enqueue_refresh(server_id=server.id, actor=actor)
            return server
        return None


def read_server(server: ToolServer) -> ServerPage:
    """Return the page of a server."""
    return ServerPage(server=server, tools=list(Tool.objects.filter(server=server).order_by("name")))


def read_tool(tool: Tool) -> ToolPage:
    """Return the page of a tool."""
    agents = agents_of_tool(tool)
    rows = Agent.objects.order_by("name").values_list("id", "name")
    # Chosen agents beyond the first ones too: posting the form without them would withdraw the tool from them.
    offered = dict(rows[:_AGENTS_OFFERED]) | dict(rows.filter(name__in=agents))
    return ToolPage(
        tool=tool,
        arguments=describe_arguments(tool.schema),
        before_arguments=describe_arguments(tool.before["schema"]) if tool.before else [],
        agents=agents,
        offered=[(agent_id, name, name in agents) for agent_id, name in offered.items()],
        is_suspended=tool.status in SUSPENDED,
        may_be_allowed=tool.status != ToolStatus.MISSING,
    )


def _refresh(request: HttpRequest, server_id: UUID) -> str:
    server = enqueue_refresh(server_id=server_id, actor=actor_of(request))
    return f"The tools of {server.name} are being listed; reload this page in a moment."


def _remove(request: HttpRequest, server_id: UUID) -> str:
    return f"{remove_server(server_id=server_id, actor=actor_of(request)).name} is removed with its tools."


def _allow(request: HttpRequest, tool_id: UUID) -> str:
    cost, whose = request.POST.get("cost", "").strip(), request.POST.get("for", "")
    if cost and not (cost.isascii() and cost.isdecimal() and len(cost) <= 6):
        raise Invalid(f"a tool's price is a whole number, got {cost[:20]!r}")
    if whose not in {"all", "chosen"}:
        raise Invalid(f"a tool is for all or for chosen agents, got {whose[:20]!r}")
    tool = allow_tool(
        tool_id=tool_id,
        actor=actor_of(request),
        cost=int(cost) if cost else None,
        agent_ids=_chosen_agents(request) if whose == "chosen" else None,
        fingerprint=request.POST.get("fingerprint", "")[:64],
    )
    return f"{tool.action} is an action of agents from their next heartbeats on."


def _chosen_agents(request: HttpRequest) -> list[UUID]:
    chosen = [read_id(text) for text in request.POST.getlist("agent")]
    if not chosen or None in chosen:
        raise Invalid("choose at least one agent, or allow the tool to all")
    return [agent_id for agent_id in chosen if agent_id is not None]


def _deny(request: HttpRequest, tool_id: UUID) -> str:
    return f"{deny_tool(tool_id=tool_id, actor=actor_of(request)).action} is withdrawn."


SERVER_ACTS: Mapping[str, RowAct] = MappingProxyType({"refresh": _refresh, "remove": _remove})
TOOL_ACTS: Mapping[str, RowAct] = MappingProxyType({"allow": _allow, "deny": _deny})


@require_POST
def act_on_server(request: HttpRequest, server_id: UUID) -> HttpResponse:
    """Apply the posted act to a server, and redirect to its page or, once it is removed, to the list."""
    refusal = apply_act(request, SERVER_ACTS, server_id, "tool server")
    if refusal is not None:
        return refusal
    if not ToolServer.objects.filter(id=server_id).exists():
        return HttpResponseRedirect(reverse("admin:tools_toolserver_changelist"))
    return HttpResponseRedirect(reverse("admin:tools_toolserver_change", args=[server_id]))


@require_POST
def act_on_tool(request: HttpRequest, tool_id: UUID) -> HttpResponse:
    """Apply the posted act to a tool, and redirect to its page or, once it is gone, to the list."""
    refusal = apply_act(request, TOOL_ACTS, tool_id, "tool")
    if refusal is not None:
        return refusal
    if not Tool.objects.filter(id=tool_id).exists():
        return HttpResponseRedirect(reverse("admin:tools_tool_changelist"))
    return HttpResponseRedirect(reverse("admin:tools_tool_change", args=[tool_id]))
