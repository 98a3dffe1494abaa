"""Searches over MCP."""

from __future__ import annotations

from apps.agents.models import Agent
from tests.factories.library import published_passage
from tests.integration.mcp_server.conftest import MemoryClient

PASSAGE = "Flights need the approval of a manager."


def test_sources_and_documents_are_searched(client: MemoryClient, agent: Agent) -> None:
    passage = published_passage(agent.tenant_id, PASSAGE)
    found = client.tool("search_my_memories", query="flights")
    assert [(row["source"], row["content"]) for row in found["results"]] == [("kb", PASSAGE)]
    assert found["missing"] == []
    (cited,) = client.tool("search_knowledge", query="flights")["passages"]
    assert cited["id"] == str(passage.id)
    assert cited["citation"].startswith("Travel, version 1")
