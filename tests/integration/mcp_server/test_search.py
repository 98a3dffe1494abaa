"""Searches over MCP."""

from __future__ import annotations

from apps.agents.models import Agent
from tests.factories.knowledge import published_passage
from tests.integration.mcp_server.conftest import InProcessClient
from tests.support.embedders import RemoteEmbedder

PASSAGE = "Flights need the approval of a manager."


def test_sources_and_documents_are_searched(client: InProcessClient, agent: Agent) -> None:
    passage = published_passage(agent.tenant_id, PASSAGE)
    found = client.tool("search_my_memories", query="flights")
    assert [(row["source"], row["content"]) for row in found["results"]] == [("kb", PASSAGE)]
    assert found["missing"] == []
    documents = client.tool("search_knowledge", query="flights")
    assert documents["by_meaning"] is True
    (cited,) = documents["passages"]
    assert cited["id"] == str(passage.id)
    assert cited["citation"].startswith("Travel, version 1")


def test_a_search_by_words_alone_says_so(
    client: InProcessClient, agent: Agent, remote: RemoteEmbedder
) -> None:
    passage = published_passage(agent.tenant_id, PASSAGE)
    remote.away = True
    found = client.tool("search_my_memories", query="flights")
    assert [note.partition(":")[0] for note in found["missing"]] == [
        "memories were not searched",
        "documents were searched by words alone",
    ]
    documents = client.tool("search_knowledge", query="flights")
    assert (documents["by_meaning"], documents["passages"][0]["id"]) == (False, str(passage.id))
