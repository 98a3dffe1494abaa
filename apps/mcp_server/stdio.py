"""Serve MCP on standard input and output to the program that started this process."""

from __future__ import annotations

from apps.agents.services.lookup import find_agent
from apps.mcp_server.mcp_caller import McpCaller
from apps.mcp_server.server import build_server
from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import require_active, tenant_by_slug


def serve_stdio(*, tenant: str, agent: str | None, role: Role, actor: str) -> None:
    """Serve a tenant's agents, or one of them, until standard input ends.

    Standard output carries the protocol alone: the SDK redirects everything else that is printed to standard error.
    Raises NotFound for the tenant or agent, TransitionIllegal if the tenant is suspended.
    """
    tenant_id = tenant_by_slug(tenant).id
    with tenant_transaction(tenant_id):
        require_active()
        only_agent = find_agent(agent).id if agent is not None else None
    caller = McpCaller(tenant_id=tenant_id, actor=actor, role=role, only_agent=only_agent, calls_models=True)
    build_server(role=role, caller=caller).run("stdio")
