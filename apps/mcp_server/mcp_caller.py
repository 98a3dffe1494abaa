"""The client of the MCP server, in a role of one tenant. This module does not import the MCP SDK."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from apps.tenants.models import Role

#: The key of a request's ASGI scope under which the HTTP transport passes the caller on.
SCOPE_KEY = "arbor.mcp_caller"


@dataclass(frozen=True, kw_only=True)
class McpCaller:
    """A client of the server, in a role of one tenant."""

    tenant_id: UUID
    #: The actor in the audit log, and the person in conversations.
    actor: str
    role: Role
    #: The only agent that the client may use; None: all of the tenant.
    only_agent: UUID | None = None
    #: Whether this process calls models, as the command line does; if not, the workers do.
    calls_models: bool = False
