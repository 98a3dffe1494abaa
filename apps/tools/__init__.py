"""MCP servers and their tools as rows."""
