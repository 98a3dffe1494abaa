"""MCP servers, and their tools that agents may call."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from apps.api.authentication import OPERATE
from apps.api.paging import ListPage, Paging, page_of
from apps.api.requests import access_of
from apps.api.rows import Input, row_of_tenant
from apps.api.scope import own_transactions
from apps.tools.models import Tool, ToolServer
from apps.tools.services.servers import SECRET_LENGTH, URL_LENGTH, add_server, refresh_server, remove_server
from apps.tools.services.tools import agents_of_tool, allow_tool, deny_tool
from arbor.adapters.webhook import redact_url
from arbor.agents.energy import ENERGY_CEILING
from arbor.tools.names import SERVER_LENGTH
from arbor.tools.status import ToolStatus

router = Router()

_MAX_AGENTS = 500


class ToolServerResource(Schema):
    """An MCP server."""

    id: UUID
    name: str
    url: str = Field(description="The host only.")
    has_secret: bool
    listed_at: datetime | None = Field(description="The time of the last listing of its tools.")
    skipped: list[str] = Field(
        description="What is left out of the list, with reasons: tools that cannot be used, and those beyond what is read."
    )
    last_error: str
    created_at: datetime

    @classmethod
    def of(cls, server: ToolServer) -> ToolServerResource:
        """Return the resource of a row."""
        plain = {
            name: getattr(server, name) for name in cls.model_fields if name not in ("url", "has_secret")
        }
        return cls(**plain, url=redact_url(server.url), has_secret=bool(server.sealed_secret))


class RefreshedServerResource(Schema):
    """A server whose tools were listed, and the names of tools that this added, suspended or removed."""

    server: ToolServerResource
    added: list[str]
    suspended: list[str]
    removed: list[str]


class ToolResource(Schema):
    """A tool. Description and schema are texts of its server."""

    id: UUID
    server_id: UUID
    action: str = Field(description="The name of the agents' action that calls it.")
    status: ToolStatus = Field(
        description="Agents call an allowed one only; a changed or missing one is suspended."
    )
    cost: int = Field(description="The price in energy.")
    for_all: bool = Field(description="False: only the agents with a grant of the action.")
    description: str
    arguments: dict[str, Any] = Field(description="The JSON schema of its arguments.")
    fingerprint: str = Field(description="Identifies the listing; give it when you allow the tool.")
    before: dict[str, Any] = Field(
        description="Of a changed tool: the description and schema that were allowed."
    )
    listed_at: datetime

    @classmethod
    def of(cls, tool: Tool) -> ToolResource:
        """Return the resource of a row."""
        plain = {name: getattr(tool, name) for name in cls.model_fields if name != "arguments"}
        return cls(**plain, arguments=tool.schema)


class ToolDetails(Schema):
    """A tool and the agents that may call it."""

    tool: ToolResource
    agents: list[str] = Field(description="The names of the chosen agents; empty for a tool of all agents.")


class ToolServerInput(Input):
    """A new server."""

    name: Annotated[str, Field(min_length=1, max_length=SERVER_LENGTH, examples=["weather"])]
    url: Annotated[str, Field(min_length=1, max_length=URL_LENGTH, examples=["https://example.org/mcp"])]
    secret: Annotated[str, Field(max_length=SECRET_LENGTH)] = Field(
        default="", description="The bearer token of its requests; stored sealed, and never shown."
    )


class AllowInput(Input):
    """The terms under which a tool is allowed."""

    cost: Annotated[int, Field(ge=0, le=ENERGY_CEILING)] | None = Field(
        default=None, description="The price in energy; null: as it is."
    )
    agent_ids: Annotated[list[UUID], Field(max_length=_MAX_AGENTS)] | None = Field(
        default=None, description="The only agents that may call it; null: all."
    )
    fingerprint: Annotated[str, Field(max_length=64)] = Field(
        default="", description="The fingerprint that you have seen: a tool that changed since is refused."
    )


@router.get("/tool-servers", response=ListPage[ToolServerResource], summary="List tool servers")
def list_tool_servers(request: HttpRequest, page: Paging) -> ListPage[ToolServerResource]:
    """List the MCP servers of the tenant by name."""
    return page_of(ToolServer.objects.all(), page, order="name", to_resource=ToolServerResource.of)


@router.post("/tool-servers", response={201: ToolServerResource}, auth=OPERATE, summary="Add a tool server")
def create_tool_server(request: HttpRequest, payload: ToolServerInput) -> Status[ToolServerResource]:
    """Add an MCP server. Refresh it to list its tools, of which none is allowed at first."""
    server = add_server(**payload.model_dump(), actor=access_of(request).actor)
    return Status(201, ToolServerResource.of(server))


@router.get("/tool-servers/{uuid:server_id}", response=ToolServerResource, summary="Show a tool server")
def show_tool_server(request: HttpRequest, server_id: UUID) -> ToolServerResource:
    """Show an MCP server."""
    return ToolServerResource.of(row_of_tenant(ToolServer, server_id))


@router.post(
    "/tool-servers/{uuid:server_id}/refresh",
    response=RefreshedServerResource,
    auth=OPERATE,
    summary="Refresh a tool server",
)
@own_transactions
def refresh_tool_server(request: HttpRequest, server_id: UUID) -> RefreshedServerResource:
    """List the tools of a server. Tools that it has changed since they were allowed are suspended."""
    access = access_of(request)
    refreshed = refresh_server(server_id=server_id, tenant_id=access.tenant_id, actor=access.actor)
    return RefreshedServerResource(
        server=ToolServerResource.of(refreshed.server),
        added=list(refreshed.change.added),
        suspended=list(refreshed.change.suspended),
        removed=list(refreshed.change.removed),
    )


@router.delete(
    "/tool-servers/{uuid:server_id}",
    response=ToolServerResource,
    auth=OPERATE,
    summary="Remove a tool server",
)
def delete_tool_server(request: HttpRequest, server_id: UUID) -> ToolServerResource:
    """Remove an MCP server with its tools."""
    return ToolServerResource.of(remove_server(server_id=server_id, actor=access_of(request).actor))


@router.get("/tools", response=ListPage[ToolResource], summary="List tools")
def list_tools(
    request: HttpRequest, page: Paging, server_id: UUID | None = None, status: ToolStatus | None = None
) -> ListPage[ToolResource]:
    """List the tools of all servers, or of one, by name."""
    tools = Tool.objects.select_related("server").defer("server__sealed_secret")
    if server_id is not None:
        tools = tools.filter(server_id=row_of_tenant(ToolServer, server_id).id)
    if status is not None:
        tools = tools.filter(status=status)
    return page_of(tools, page, order="name", to_resource=ToolResource.of)


@router.get("/tools/{uuid:tool_id}", response=ToolDetails, summary="Show a tool")
def show_tool(request: HttpRequest, tool_id: UUID) -> ToolDetails:
    """Show a tool and the agents that may call it."""
    return _with_agents(row_of_tenant(Tool, tool_id))


@router.post("/tools/{uuid:tool_id}/allow", response=ToolDetails, auth=OPERATE, summary="Allow a tool")
def allow(request: HttpRequest, tool_id: UUID, payload: AllowInput) -> ToolDetails:
    """Allow a tool to all agents, or to chosen ones, as its server lists it now."""
    return _with_agents(allow_tool(tool_id=tool_id, actor=access_of(request).actor, **payload.model_dump()))


@router.post("/tools/{uuid:tool_id}/deny", response=ToolResource, auth=OPERATE, summary="Withdraw a tool")
def deny(request: HttpRequest, tool_id: UUID) -> ToolResource:
    """Withdraw a tool from all agents."""
    return ToolResource.of(deny_tool(tool_id=tool_id, actor=access_of(request).actor))


def _with_agents(tool: Tool) -> ToolDetails:
    return ToolDetails(tool=ToolResource.of(tool), agents=agents_of_tool(tool))
