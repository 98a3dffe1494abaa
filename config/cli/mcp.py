"""Serve agents over the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import importlib
import os

#: Database connections of the process: a client seldom calls more tools at once.
CONNECTIONS = 4


def serve(tenant_slug: str | None, agent: str | None, role: str) -> None:
    """Serve a tenant's agents to the program that started this process, until it closes standard input."""
    # Tools run in threads, which share connections. Read by the settings, so set before Django is set up.
    os.environ.setdefault("ARBOR_DB_POOL_SIZE", str(CONNECTIONS))
    importlib.import_module("config.cli.kit.with_django")
    importlib.import_module("config.cli.mcp_stdio").serve_tenant(tenant_slug, agent, role)
