"""Resolve the tenant and the person of `arbor mcp`, and serve."""

from __future__ import annotations

from django.db import connections

from apps.mcp_server.stdio import serve_stdio
from apps.tenants.models import Role
from apps.tenants.scope import APP
from config.cli.kit.tenancy import choose_tenant, person


def serve_tenant(tenant_slug: str | None, agent: str | None, role: str) -> None:
    """Serve the named tenant, or the only one. Raises OperationalError if the database refuses this process."""
    _connect_once()
    tenant = choose_tenant(tenant_slug)
    serve_stdio(tenant=tenant.slug, agent=agent, role=Role(role), actor=f"mcp:{person()}")


def _connect_once() -> None:
    """Connect without the pool, whose error would name only the time that it waited."""
    connection = connections[APP].copy()
    connection.settings_dict["OPTIONS"].pop("pool", None)
    try:
        connection.ensure_connection()
    finally:
        connection.close()
