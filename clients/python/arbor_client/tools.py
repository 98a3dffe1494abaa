"""MCP servers, and their tools that agents may call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from arbor_client.calls import Call, Id, PagedCall, delete, get, listed, post, segment
from arbor_client.groups import Group, listing, operation

if TYPE_CHECKING:
    from arbor_client.clients import Arbor, AsyncArbor


@dataclass(frozen=True, kw_only=True)
class ToolServer:
    """An MCP server."""

    id: UUID
    name: str
    #: The host only.
    url: str
    has_secret: bool
    #: The time of the last listing of its tools.
    listed_at: datetime | None
    #: Tools that cannot be used, with reasons.
    skipped: list[str]
    last_error: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class RefreshedServer:
    """A server whose tools were listed, and the names of the tools that the listing added, suspended or removed."""

    server: ToolServer
    added: list[str]
    suspended: list[str]
    removed: list[str]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool. Description and schema are texts of its server."""

    id: UUID
    server_id: UUID
    #: The name of the agents' action that calls it.
    action: str
    status: str
    #: The price in energy.
    cost: int
    #: False: only the agents with a grant of the action.
    for_all: bool
    description: str
    #: The JSON schema of its arguments.
    arguments: dict[str, Any]
    #: Identifies the listing; give it when you allow the tool.
    fingerprint: str
    #: Of a changed tool: the description and schema that were allowed.
    before: dict[str, Any]
    listed_at: datetime


@dataclass(frozen=True, kw_only=True)
class ToolDetails:
    """A tool, and the agents that may call it."""

    tool: Tool
    #: The names of the chosen agents; empty for a tool of all agents.
    agents: list[str]


class ToolServers[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about MCP servers."""

    @listing
    def list(self) -> PagedCall[ToolServer]:
        """List the MCP servers of the tenant by name."""
        return listed(ToolServer, "/tool-servers")

    @operation
    def get(self, server_id: Id) -> Call[ToolServer]:
        """Return an MCP server."""
        return get(ToolServer, f"/tool-servers/{segment(server_id)}")

    @operation
    def add(self, name: str, url: str, *, secret: str = "") -> Call[ToolServer]:
        """Add an MCP server, with the bearer token of its requests. Refresh it to list its tools."""
        return post(ToolServer, "/tool-servers", {"name": name, "url": url, "secret": secret})

    @operation
    def refresh(self, server_id: Id) -> Call[RefreshedServer]:
        """List the tools of a server. Tools that it has changed since they were allowed are suspended."""
        return post(RefreshedServer, f"/tool-servers/{segment(server_id)}/refresh")

    @operation
    def remove(self, server_id: Id) -> Call[ToolServer | None]:
        """Remove an MCP server with its tools."""
        return delete(ToolServer, f"/tool-servers/{segment(server_id)}")


class Tools[C: (Arbor, AsyncArbor)](Group[C]):
    """Operations about tools of MCP servers."""

    @listing
    def list(self, *, server_id: Id | None = None, status: str | None = None) -> PagedCall[Tool]:
        """List the tools of all servers, or of one, by name."""
        return listed(Tool, "/tools", server_id=server_id, status=status)

    @operation
    def get(self, tool_id: Id) -> Call[ToolDetails]:
        """Return a tool and the agents that may call it."""
        return get(ToolDetails, f"/tools/{segment(tool_id)}")

    @operation
    def allow(
        self,
        tool_id: Id,
        *,
        cost: int | None = None,
        agent_ids: Iterable[Id] | None = None,
        fingerprint: str = "",
    ) -> Call[ToolDetails]:
        """Allow a tool to all agents, or to chosen ones; with a fingerprint, only as it was when you read it."""
        body = {"cost": cost, "agent_ids": agent_ids, "fingerprint": fingerprint}
        return post(ToolDetails, f"/tools/{segment(tool_id)}/allow", body)

    @operation
    def deny(self, tool_id: Id) -> Call[Tool]:
        """Withdraw a tool from all agents."""
        return post(Tool, f"/tools/{segment(tool_id)}/deny")
