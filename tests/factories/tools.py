"""MCP servers and tools for tests."""

from __future__ import annotations

import factory

from apps.tools.models import Tool, ToolServer
from tests.factories.rows import TenantRowFactory, minutes_ago


class ToolServerFactory(TenantRowFactory[ToolServer]):
    class Meta:
        model = ToolServer

    name = factory.Sequence(lambda n: f"server-{n}")
    url = "https://example.org/mcp"
    listed_at = factory.LazyFunction(lambda: minutes_ago(3))


class ToolFactory(TenantRowFactory[Tool]):
    class Meta:
        model = Tool

    server = factory.SubFactory(ToolServerFactory)
    name = factory.Sequence(lambda n: f"tool_{n}")
    description = "Gives the forecast."
    schema = factory.LazyFunction(lambda: {"type": "object", "properties": {}, "required": []})
    fingerprint = "f" * 64
    cost = 3
    listed_at = factory.LazyFunction(lambda: minutes_ago(3))
