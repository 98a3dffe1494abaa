"""Resolve the tenant and the person of `arbor mcp`, and serve."""

from __future__ import annotations

import getpass

from apps.mcp_server.stdio import serve_stdio
from apps.tenants.models import Role
from config.cli.kit.tenancy import choose_tenant


def serve_tenant(tenant_slug: str | None, agent: str | None, role: str) -> None:
    """Serve the named tenant, or the only one."""
    tenant = choose_tenant(tenant_slug)
    serve_stdio(tenant=tenant.slug, agent=agent, role=Role(role), actor=f"mcp:{getpass.getuser()}")
