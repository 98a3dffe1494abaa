"""Add MCP servers, list, allow and call their tools."""
