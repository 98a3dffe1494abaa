"""The commands about MCP servers and their tools."""

from __future__ import annotations

import click

from config.cli.kit.declarations import argument, group, option, tenant_command

_server = group(
    "server",
    "Manage MCP servers.",
    tenant_command(
        "list",
        "List the servers with their last errors.",
        run="tools:list_servers",
        examples=("arbor tool server list",),
    ),
    tenant_command(
        "add",
        "Add a server, and list its tools. None is allowed yet.",
        argument("name"),
        option("--url", required=True, help="Its address, of streamable HTTP."),
        option(
            "--secret-stdin",
            is_flag=True,
            help="Read the bearer token of its requests from standard input; it is stored sealed.",
        ),
        run="tools:add",
        examples=(
            "arbor tool server add weather --url https://example.org/mcp",
            "arbor tool server add tickets --url https://example.org/mcp --secret-stdin < token.txt",
        ),
    ),
    tenant_command(
        "refresh",
        "List the tools of a server again. Tools that it has changed are suspended.",
        argument("name"),
        run="tools:refresh",
        examples=("arbor tool server refresh weather",),
    ),
    tenant_command(
        "remove",
        "Remove a server with its tools, their trust rules and open approvals.",
        argument("name"),
        run="tools:remove",
        examples=("arbor tool server remove weather",),
    ),
)

_tool = group(
    "tool",
    "Manage the tools of MCP servers that agents may call. TOOL is SERVER.NAME.",
    _server,
    tenant_command(
        "list",
        "List the tools of all servers, or of one.",
        option("--server", metavar="NAME", help="Only this server's."),
        run="tools:list_tools",
        examples=("arbor tool list --server weather",),
    ),
    tenant_command(
        "show",
        "Show what a server says about a tool, and what it said when the tool was allowed.",
        argument("tool"),
        run="tools:show",
        examples=("arbor tool show weather.forecast",),
    ),
    tenant_command(
        "allow",
        "Allow a tool to agents, as its server lists it now.",
        argument("tool"),
        option(
            "--cost",
            type=click.IntRange(0, 1000),
            help="Its cost in energy.  [default: as it is; at first 3]",
        ),
        option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent. Can be repeated."),
        run="tools:allow",
        examples=(
            "arbor tool allow weather.forecast --cost 2",
            "arbor tool allow tickets.create --agent Vega --agent Ada",
        ),
    ),
    tenant_command(
        "deny",
        "Withdraw a tool from all agents.",
        argument("tool"),
        run="tools:deny",
        examples=("arbor tool deny weather.forecast",),
    ),
    details="A tool is an action of agents, with a cost; what its server says about it is data. docs/how-to/use-mcp-tools.md.",
)

COMMANDS = (_tool,)
