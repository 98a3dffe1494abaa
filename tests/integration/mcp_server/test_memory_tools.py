"""Tools of the MCP server about memories."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.db import connections
from mcp.shared.exceptions import MCPError

from apps.agents.models import Agent
from apps.mcp_server import callers
from apps.mcp_server.tools import TOOLS
from apps.memories.models import Memory, MemoryAccess
from apps.tenants.models import Tenant
from apps.tenants.scope import APP, tenant_transaction
from tests.factories.memories import MemoryFactory
from tests.integration.mcp_server.conftest import (
    ACTOR,
    InProcessClient,
    SessionCalls,
    ToolFailed,
    audited_messages,
)


class TestMemories:
    def test_a_memory_is_stored_once(self, client: InProcessClient, tenant: Tenant, agent: Agent) -> None:
        first = client.tool("remember", content="The ferry leaves at noon.", concepts=["harbour"])
        again = client.tool("remember", content="The ferry leaves at noon.")
        assert (first["new"], again["new"]) == (True, False)
        assert first["id"] == again["id"]
        with tenant_transaction(tenant.id):
            memory = Memory.objects.get(id=first["id"])
            assert (memory.type, memory.retention, memory.source) == ("semantic", "lasting", ACTOR)
            # A second call reinforces the memory, so a client must not repeat the tool at will.
            assert MemoryAccess.objects.get(memory_id=first["id"]).reinforced == 1
        (tool,) = (tool for tool in TOOLS if tool.name == "remember")
        assert tool.annotations.idempotent_hint is False
        assert audited_messages(tenant) == ["added a memory to Ada"] * 2

    def test_a_recall_is_filtered(self, client: InProcessClient) -> None:
        for kind in ("semantic", "episodic"):
            client.tool("remember", content=f"A {kind} word about the quince tree.", type=kind)
        found = client.tool("recall", query="the quince tree", types=["episodic"])["memories"]
        assert [memory["type"] for memory in found] == ["episodic"]
        assert client.tool("recall", query="the quince tree", until="2001-01-01T00:00:00")["memories"] == []

    def test_times_of_any_offset_are_read_as_utc(self, client: InProcessClient, tenant: Tenant) -> None:
        # PostgreSQL itself refuses offsets of 16 hours or more.
        stored = client.tool(
            "remember", content="The quince tree blooms.", occurred_at="2026-05-01T12:00:00+20:43"
        )
        with tenant_transaction(tenant.id):
            occurred_at = Memory.objects.get(id=stored["id"]).occurred_at
        assert occurred_at == datetime(2026, 4, 30, 15, 17, tzinfo=UTC)
        for bound, is_found in (("since", False), ("until", True)):
            recalled = client.tool("recall", query="the quince tree", **{bound: "2026-05-01T12:00:01+20:43"})
            assert (stored["id"] in [memory["id"] for memory in recalled["memories"]]) is is_found
        with pytest.raises(ToolFailed, match="years 1 to 9999 in UTC"):
            client.tool("recall", query="the quince tree", until="9999-12-31T23:59:59-10:00")

    def test_a_recall_changes_nothing(self, client: InProcessClient, tenant: Tenant) -> None:
        client.tool("remember", content="The ferry leaves at noon.")
        assert client.tool("recall", query="When does the ferry leave?")["memories"]
        with tenant_transaction(tenant.id):
            assert not MemoryAccess.objects.exists()

    def test_a_recall_is_explained(self, client: InProcessClient, other_tenant: Tenant) -> None:
        stored = [
            client.tool("remember", content=f"The quince of {name} blooms.")["id"] for name in ("Ada", "Ben")
        ]
        asked = {"query": "the quince of Ada", "limit": 1}
        first = client.tool("explain_recall", memory_id=stored[0], **asked)
        assert (first["recalled"], first["reasons"]) == (True, ["it is recalled, as number 1"])
        second = client.tool("explain_recall", memory_id=stored[1], **asked)
        assert second["reasons"][0].startswith("it is outranked by 1: its score is ")
        with tenant_transaction(other_tenant.id):
            foreign = MemoryFactory.create().id
        for memory_id in (uuid4(), foreign):
            unknown = client.tool("explain_recall", memory_id=str(memory_id), **asked)
            assert (unknown["reasons"], unknown["components"]) == (
                ["this agent has no memory with that id"],
                None,
            )

    def test_a_procedure_has_steps(self, client: InProcessClient) -> None:
        with pytest.raises(ToolFailed, match="a procedure has steps: give them in order"):
            client.tool("remember", content="Moor a boat.", type="procedural")
        client.tool(
            "remember", content="Moor a boat.", type="procedural", steps=["Throw the line.", "Tie it."]
        )
        (memory,) = client.tool("recall", query="moor a boat", types=["procedural"])["memories"]
        assert "Throw the line." in " ".join(memory["details"])

    def test_memories_are_connected(self, client: InProcessClient, tenant: Tenant) -> None:
        rain = client.tool("remember", content="It rained all week.")["id"]
        flood = client.tool("remember", content="The cellar is under water.")["id"]
        made = client.tool("connect", source=rain, relation="causes", target=flood, weight=0.8)
        assert (made["source"], made["target"]) == (f"memory:{rain}", f"memory:{flood}")
        (node,) = client.tool("show_connections", node=flood, relations=["causes"])["nodes"]
        assert (node["id"], node["hops"]) == (rain, 1)
        assert audited_messages(tenant)[-1].startswith("related two things of Ada: memory:")

    def test_a_text_that_cannot_be_stored_is_explained(self, client: InProcessClient) -> None:
        with pytest.raises(ToolFailed, match="a character that cannot be stored, such as NUL"):
            client.tool("list_agents", name="Ada\0")

    def test_a_statement_that_takes_too_long_is_explained(
        self, client: InProcessClient, agent: Agent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def sleep(_reference: str) -> None:
            with connections[APP].cursor() as cursor:
                cursor.execute("SET LOCAL statement_timeout = 1")
                cursor.execute("SELECT pg_sleep(5)")

        async def read(session: SessionCalls) -> str:
            with pytest.raises(MCPError) as failed:
                await session.resource("agent://Ada/goals")
            return str(failed.value)

        monkeypatch.setattr(callers, "find_agent", sleep)
        with pytest.raises(ToolFailed, match="the database needed too long for the request"):
            client.tool("list_goals", agent="Ada")
        assert "the database needed too long for the request" in client.run(read)

    def test_an_unknown_node_is_explained(self, client: InProcessClient) -> None:
        with pytest.raises(ToolFailed, match="Ada has nothing with the id"):
            client.tool("show_connections", node=str(uuid4()))
