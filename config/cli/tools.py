"""Manage MCP servers and their tools."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from rich.markup import escape

from apps.agents.services.lookup import agent_by_name
from apps.tenants.scope import tenant_transaction
from apps.tools.models import Tool, ToolServer
from apps.tools.services.servers import (
    RefreshedServer,
    add_server,
    refresh_server,
    remove_server,
    server_by_name,
)
from apps.tools.services.tools import agents_of_tool, allow_tool, deny_tool, tool_by_action
from arbor.adapters.webhook import redact_url
from arbor.errors import NotFound, ToolFailed
from arbor.tools.names import PREFIX
from arbor.tools.ports import MAX_SKIPPED
from arbor.tools.schemas import describe_arguments
from config.cli.kit.columns import OutputColumn, columns_for, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.lookup import tenant_of_name
from config.cli.kit.output import format_relative_time
from config.cli.kit.tenancy import actor, choose_tenant, tenant_having, tenant_or_all
from config.cli.kit.text_files import read_secret_text

SERVER_COLUMNS = (
    OutputColumn("name", "name"),
    OutputColumn("tenant", "tenant", value=lambda server: server.tenant.slug),
    OutputColumn("url", "url", value=lambda server: redact_url(server.url)),
    OutputColumn(
        "listed_at",
        "listed",
        value=lambda server: server.listed_at.isoformat() if server.listed_at else None,
    ),
    OutputColumn(
        "skipped",
        "left out",
        cell=lambda lines: len(lines) if len(lines) <= MAX_SKIPPED else f"over {MAX_SKIPPED}",
    ),
    OutputColumn("last_error", "last error"),
    OutputColumn("id"),
)
TOOL_COLUMNS = (
    OutputColumn("action", "action"),
    OutputColumn("tenant", "tenant", value=lambda tool: tool.tenant.slug),
    OutputColumn("status", "status"),
    OutputColumn("cost", "energy"),
    OutputColumn("for_all", "for", cell=lambda for_all: "all agents" if for_all else "chosen agents"),
    OutputColumn("description", "description", cell=lambda text: text[:60]),
    OutputColumn("listed_at", value=lambda tool: tool.listed_at.isoformat()),
    OutputColumn(head="listed", value=lambda tool: format_relative_time(tool.listed_at)),
    OutputColumn("id"),
)


def list_servers(tenant_slug: str | None) -> Output:
    """List the servers."""
    with tenant_or_all(tenant_slug, reason="list of tool servers") as tenant:
        servers = ToolServer.objects.select_related("tenant").defer("sealed_secret")
        shown = list(servers if tenant else servers.order_by("tenant__slug", "name"))
    return listing(
        "servers",
        shown,
        columns_for(SERVER_COLUMNS, one_tenant=tenant is not None),
        empty="No tool servers. [bold]arbor tool server add NAME --help[/bold]",
    )


def add(name: str, url: str, secret_stdin: bool, tenant_slug: str | None) -> Output:
    """Add a server and list its tools. A server that does not answer is added nevertheless."""
    secret = read_secret_text(sys.stdin) if secret_stdin else ""
    tenant_id = choose_tenant(tenant_slug).id
    with tenant_transaction(tenant_id):
        server = add_server(name=name, url=url, secret=secret, actor=actor())
        line = row_to_dict(server, SERVER_COLUMNS)
    try:
        refreshed = refresh_server(server_id=server.id, tenant_id=tenant_id, actor=actor())
    except ToolFailed as error:
        text = f"[bold]{escape(server.name)}[/bold] is added, but its tools cannot be listed: {escape(str(error))}."
        return Output(line | {"last_error": str(error)}, text=text)
    return _refresh_output(refreshed, tenant_id, word="is added")


def refresh(name: str, tenant_slug: str | None) -> Output:
    """List the tools of a server again."""
    tenant_id = tenant_of_name(ToolServer, name, tenant_slug)
    with tenant_transaction(tenant_id):
        server = server_by_name(name)
    refreshed = refresh_server(server_id=server.id, tenant_id=tenant_id, actor=actor())
    return _refresh_output(refreshed, tenant_id, word="is up to date")


def _refresh_output(refreshed: RefreshedServer, tenant_id: UUID, *, word: str) -> Output:
    change = refreshed.change
    with tenant_transaction(tenant_id):
        line = row_to_dict(refreshed.server, SERVER_COLUMNS)
    text = f"[bold]{escape(refreshed.server.name)}[/bold] {word}: {escape(str(change))}."
    text += "".join(f"\n  not usable: {escape(reason)}" for reason in change.skipped)
    text += "\nAllow a tool by [bold]arbor tool allow SERVER.NAME[/bold]; [bold]arbor tool list[/bold] shows them."
    changes = {
        "added": list(change.added),
        "suspended": list(change.suspended),
        "removed": list(change.removed),
    }
    return Output(line | changes, text=text)


def remove(name: str, tenant_slug: str | None) -> Output:
    """Remove a server with its tools, their trust rules and open approvals."""
    with tenant_transaction(tenant_of_name(ToolServer, name, tenant_slug)):
        removed = remove_server(server_id=server_by_name(name).id, actor=actor())
        line = row_to_dict(removed, SERVER_COLUMNS)
    return Output({"removed": line}, text=f"[bold]{escape(removed.name)}[/bold] is removed with its tools.")


def list_tools(server: str | None, tenant_slug: str | None) -> Output:
    """List the tools of all servers, or of one."""
    with tenant_or_all(tenant_slug, reason="list of tools") as tenant:
        tools = Tool.objects.select_related("server", "tenant").defer("server__sealed_secret")
        if server is not None:
            if not ToolServer.objects.filter(name=server).exists():
                raise NotFound(f"there is no tool server {server!r}; `arbor tool server list` shows them")
            tools = tools.filter(server__name=server)
        shown = list(tools if tenant else tools.order_by("tenant__slug", "server__name", "name"))
    return listing(
        "tools",
        shown,
        columns_for(TOOL_COLUMNS, one_tenant=tenant is not None),
        empty="No tools. [bold]arbor tool server add NAME --help[/bold]",
    )


def show(tool: str, tenant_slug: str | None) -> Output:
    """Show what a server says about a tool, and what it said when the tool was allowed."""
    with tenant_transaction(_tenant_of_tool(tool, tenant_slug)):
        found = tool_by_action(tool)
        details = _details(found)
    text = "\n".join(
        [
            f"[bold]{escape(found.action)}[/bold] is {found.status}, {found.cost} energy.",
            f"It says: {escape(found.description) or 'nothing'}",
            *(f"  {escape(line)}" for line in describe_arguments(found.schema)),
            *_lines_before(found.before),
        ]
    )
    return Output(details, text=text)


def _lines_before(before: dict[str, Any]) -> list[str]:
    if not before:
        return []
    return [
        f"When it was allowed, it said: {escape(before['description']) or 'nothing'}",
        *(f"  {escape(line)}" for line in describe_arguments(before["schema"])),
    ]


def allow(tool: str, cost: int | None, agents: Sequence[str], tenant_slug: str | None) -> Output:
    """Allow a tool to agents, as its server lists it now."""
    with tenant_transaction(_tenant_of_tool(tool, tenant_slug)):
        allowed = allow_tool(
            tool_id=tool_by_action(tool).id,
            cost=cost,
            agent_ids=[agent_by_name(name).id for name in agents] if agents else None,
            actor=actor(),
        )
        details = _details(allowed)
    whose = ", ".join(details["agents"]) or "all agents"
    text = f"[bold]{escape(allowed.action)}[/bold] is an action of {escape(whose)} for {allowed.cost} energy, from their next heartbeats on."
    return Output(details, text=text)


def deny(tool: str, tenant_slug: str | None) -> Output:
    """Withdraw a tool from all agents."""
    with tenant_transaction(_tenant_of_tool(tool, tenant_slug)):
        denied = deny_tool(tool_id=tool_by_action(tool).id, actor=actor())
        line = row_to_dict(denied, TOOL_COLUMNS)
    return Output(line, text=f"[bold]{escape(denied.action)}[/bold] is withdrawn.")


def _details(tool: Tool) -> dict[str, Any]:
    return {
        **row_to_dict(tool, TOOL_COLUMNS),
        "schema": tool.schema,
        "before": tool.before or None,
        "agents": agents_of_tool(tool),
    }


def _tenant_of_tool(tool: str, slug: str | None) -> UUID:
    server, _, name = tool.strip().removeprefix(PREFIX).partition(".")
    return tenant_having(
        lambda: Tool.objects.filter(server__name=server, name=name), what=f"a tool {tool!r}", slug=slug
    )
