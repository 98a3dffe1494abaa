"""The client of tool servers of this process, created from the settings once."""

from __future__ import annotations

import importlib
from functools import lru_cache
from typing import cast

from django.conf import settings

from arbor.tools.ports import ToolClient


@lru_cache(maxsize=1)
def tool_client() -> ToolClient:
    """Return the client. Loads the SDK at the first use: it takes half a second, and most processes never call a tool."""
    module = importlib.import_module("arbor.adapters.mcp_client")
    client = (
        module.McpClient(max_bytes=settings.ARBOR_MCP_RESULT_BYTES, permits=lambda _address: True)
        if settings.ARBOR_MCP_ALLOW_PRIVATE
        else module.McpClient(max_bytes=settings.ARBOR_MCP_RESULT_BYTES)
    )
    return cast("ToolClient", client)
