"""Tools of the MCP server, called by the SDK's client in memory."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import anyio
import anyio.to_thread
import pytest
from django.db import connections

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditAction, AuditEvent
from apps.contacts.models import ChatSession
from apps.contacts.services.chat import answer_turn, open_session
from apps.fleet.identities import suspend_identity
from apps.fleet.lifecycle import destroy_agent
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.inline import run_heartbeat_now
from apps.heartbeats.services.processes import fleet_model
from apps.knowledge.services.categories import set_categories
from apps.mcp_server.tools import TOOLS, goals
from apps.selves.services.proposals import propose
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.goals.values import NOTE_LENGTH
from arbor.selves.proposals import NewProposal, ProposalKind
from tests.factories.knowledge import DocumentFactory, DocumentVersionFactory
from tests.integration.chat.conftest import model_answer
from tests.integration.heartbeats.conftest import REST
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script
from tests.integration.mcp_server.conftest import (
    ACTOR,
    InProcessClient,
    SessionCalls,
    ToolFailed,
    audited_messages,
)
from tests.support.cluster import ROOT


class TestGoals:
    def test_a_goal_is_added_and_completed(self, client: InProcessClient, tenant: Tenant) -> None:
        goal = client.tool("add_goal", title="Find the ford", state="active")
        assert client.tool("update_goal", goal="find the ford", note="Half.", progress=0.5)["fraction"] == 0.5
        client.tool("update_goal", goal=goal["id"], note="x" * NOTE_LENGTH)
        done = client.tool("update_goal", goal=goal["id"], progress=1.0)
        assert done["state"] == "completed"
        assert "Find the ford" not in [line["title"] for line in client.tool("list_goals")["goals"]]
        closed = client.tool("list_goals", closed=True)["goals"]
        assert ("Find the ford", "completed") in [(line["title"], line["state"]) for line in closed]
        assert audited_messages(tenant)[0] == "added goal 'Find the ford', queued"

    def test_closed_goals_are_bounded(self, client: InProcessClient, monkeypatch: pytest.MonkeyPatch) -> None:
        for title in ("Find the ford", "Find the bridge"):
            client.tool("add_goal", title=title)
            client.tool("update_goal", goal=title, state="abandoned", reason="It is dry.")
        listed = client.tool("list_goals", closed=True)
        assert {line["title"] for line in listed["goals"]} >= {"Find the ford", "Find the bridge"}
        assert not listed["more"]
        monkeypatch.setattr(goals, "MAX_CLOSED", 1)
        listed = client.tool("list_goals", closed=True)
        assert [line["title"] for line in listed["goals"] if line["state"] == "abandoned"] == [
            "Find the bridge"
        ]
        assert listed["more"]

    def test_the_state_that_a_goal_has_may_be_named_with_a_reason(self, client: InProcessClient) -> None:
        goal = client.tool("add_goal", title="Find the ford")
        named = {"goal": goal["id"], "state": goal["state"], "reason": "It goes well."}
        assert client.tool("update_goal", note="Half.", progress=0.5, **named)["fraction"] == 0.5
        assert client.tool("update_goal", **named)["state"] == goal["state"]

    def test_an_abandoned_goal_needs_a_reason(self, client: InProcessClient) -> None:
        client.tool("add_goal", title="Find the ford")
        with pytest.raises(ToolFailed, match="reason"):
            client.tool("update_goal", goal="Find the ford", state="abandoned")
        with pytest.raises(ToolFailed, match="has no goal 'Ferry'; list_goals"):
            client.tool("update_goal", goal="Ferry", note="Gone.")


class TestContacts:
    def test_a_conversation_goes_on(self, client: InProcessClient, scripted: Script) -> None:
        scripted(model_answer("Good morning."), model_answer("At noon."))

        async def use(session: SessionCalls) -> Any:
            return [
                await session.tool("chat", message="Good morning, Ada."),
                await session.tool("chat", message="When does the ferry leave?"),
                await session.tool("end_conversation"),
            ]

        first, second, ended = client.run(use)
        assert (first["reply"], second["reply"]) == ("Good morning.", "At noon.")
        assert first["conversation"] == second["conversation"] == ended["conversation"]

    def test_an_answer_names_its_boundaries(self, client: InProcessClient, scripted: Script) -> None:
        scripted(model_answer("Here is how to build a bomb: you take soap."))
        answer = client.tool("chat", message="How is a bomb made?")
        assert answer["boundaries"] == ["no_harm"]

    def test_the_conversation_of_another_program_goes_on(self, client: InProcessClient, agent: Agent) -> None:
        with tenant_transaction(agent.tenant_id):
            own = open_session(agent_id=agent.id, person=ACTOR)
            other = open_session(agent_id=agent.id, person=ACTOR, client_key="task-7")
        assert client.tool("end_conversation")["conversation"] == str(own.id)
        with tenant_transaction(agent.tenant_id):
            assert ChatSession.objects.get(id=other.id).ended_at is None

    def test_a_worker_answers_when_the_server_calls_no_model(
        self, tenant: Tenant, agent: Agent, fleet: Fleet, scripted: Script
    ) -> None:
        scripted(model_answer("At noon."))

        def answer() -> bool:
            turn_id = UUID(fleet.messages[-1].arguments["turn_id"])
            try:
                return answer_turn(tenant_id=tenant.id, turn_id=turn_id, execute=execute_call)
            finally:
                connections.close_all()

        async def answer_when_enqueued() -> None:
            while not fleet.messages:
                await anyio.sleep(0.02)
            assert await anyio.to_thread.run_sync(answer)

        async def use(session: SessionCalls) -> Any:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_when_enqueued)
                return await session.tool("chat", message="When does the ferry leave?")

        assert InProcessClient(tenant=tenant, calls_models=False).run(use)["reply"] == "At noon."

    def test_an_event_waits_for_the_next_heartbeat(self, client: InProcessClient, tenant: Tenant) -> None:
        event = client.tool("notify_agent", event="The build failed.", kind="error", detail={"job": 7})
        message = client.tool("message_agent", text="Please look at the build.")
        assert (event["due_now"], message["due_now"]) == (False, True)
        with tenant_transaction(tenant.id):
            kinds = list(Percept.objects.order_by("id").values_list("kind", flat=True))
        assert kinds == ["error", "user_message"]

    def test_a_message_waits_while_the_identity_is_suspended(
        self, client: InProcessClient, tenant: Tenant, agent: Agent
    ) -> None:
        with tenant_transaction(tenant.id):
            suspend_identity(agent_id=agent.id, reason="its key leaked", actor="test")
        message = client.tool("message_agent", text="Please look at the build.")
        assert (message["status"], message["due_now"]) == ("active", False)

    def test_an_event_cannot_be_a_message_of_a_user(self, client: InProcessClient) -> None:
        with pytest.raises(ToolFailed, match="'environment', 'interrupt' or 'error'"):
            client.tool("notify_agent", event="Hello.", kind="user_message")


class TestHeartbeats:
    def test_a_heartbeat_is_traced(self, client: InProcessClient, agent: Agent, scripted: Script) -> None:
        with pytest.raises(ToolFailed, match="Ada has no heartbeat yet"):
            client.tool("trace_heartbeat")
        scripted(REST)
        run_heartbeat_now(agent_id=agent.id, tenant_id=agent.tenant_id)
        (line,) = client.tool("list_heartbeats")["heartbeats"]
        trace = client.tool("trace_heartbeat", number=1)
        assert line["actions"] == trace["actions"] == ["rest"]
        assert trace["reasoning"] == "All is well."
        assert trace["steps"][0]["node"]

    def test_health_counts_agents(self, client: InProcessClient) -> None:
        health = client.tool("show_health")
        assert (health["agents"]["active"], health["workers_alive"]) == (1, False)

    def test_health_names_the_default_model_of_the_tenant(
        self, client: InProcessClient, tenant: Tenant
    ) -> None:
        assert client.tool("show_health")["model"] == fleet_model()
        Tenant.objects.using(OPS).filter(id=tenant.id).update(default_model="openai/gpt-6-luna")
        assert client.tool("show_health")["model"] == "openai/gpt-6-luna"


class TestProposals:
    def test_a_proposal_is_rejected(self, client: InProcessClient, agent: Agent) -> None:
        with tenant_transaction(agent.tenant_id):
            propose(
                agent_id=agent.id,
                proposals=[
                    NewProposal(
                        kind=ProposalKind.IDENTITY, content="I am patient.", confidence=0.8, source="test"
                    )
                ],
            )
        (proposal,) = client.tool("list_proposals")["proposals"]
        decided = client.tool("decide_proposal", proposal=proposal["id"], decision="reject", reason="No.")
        assert (decided["status"], decided["decided_by"]) == ("rejected", ACTOR)
        assert client.tool("list_proposals")["proposals"] == []
        with pytest.raises(ToolFailed, match="rejected"):
            client.tool("decide_proposal", proposal=proposal["id"], decision="accept")
        with tenant_transaction(agent.tenant_id):
            # The refused decision is not in the audit log.
            (event,) = AuditEvent.objects.filter(action=AuditAction.OPERATOR_ACT, agent_id=agent.id)
        assert (event.actor, event.detail["decision"]) == (ACTOR, "reject")


class TestAccess:
    def test_a_role_determines_the_tools(self, tenant: Tenant, agent: Agent) -> None:
        async def use(session: SessionCalls) -> Any:
            tools = (await session.client.list_tools()).tools
            with pytest.raises(ToolFailed, match="Unknown tool: remember"):
                await session.tool("remember", content="x")
            return tools

        tools = InProcessClient(tenant=tenant, role=Role.VIEWER).run(use)
        assert all(tool.annotations.read_only_hint for tool in tools)
        assert "recall" in [tool.name for tool in tools]

    def test_a_server_of_one_agent_serves_no_other(
        self, tenant: Tenant, agent: Agent, new_agent: Any
    ) -> None:
        bea = new_agent(tenant, name="Bea")
        client = InProcessClient(tenant=tenant, only_agent=bea.id)
        assert [line["name"] for line in client.tool("list_agents")["agents"]] == ["Bea"]
        assert client.tool("show_health")["agents"]["active"] == 1
        assert client.tool("remember", content="Mine.")["agent"] == "Bea"
        assert client.tool("recall", query="Mine", agent="bea")["agent"] == "Bea"
        # An error tells neither which other agents exist nor how they are called.
        for name in ("Ada", str(agent.id), "Eve"):
            with pytest.raises(ToolFailed, match=f"this server serves Bea alone, not '{name}'$"):
                client.tool("recall", query="x", agent=name)
        with pytest.raises(ToolFailed, match="say which agent is meant: agent is one of Ada, Bea"):
            InProcessClient(tenant=tenant).tool("recall", query="x")

    def test_a_server_of_a_destroyed_agent_says_so(
        self, tenant: Tenant, agent: Agent, new_agent: Any
    ) -> None:
        bea = new_agent(tenant, name="Bea")
        client = InProcessClient(tenant=tenant, only_agent=bea.id)
        with tenant_transaction(tenant.id):
            destroy_agent(agent_id=bea.id, confirm="Bea", actor=ACTOR)
        for named in ({}, {"agent": "Bea"}, {"agent": "Ada"}):
            with pytest.raises(ToolFailed, match="the only agent that this server serves was destroyed"):
                client.tool("recall", query="x", **named)

    def test_agents_of_other_tenants_do_not_exist(
        self, client: InProcessClient, other_tenant: Tenant, new_agent: Any
    ) -> None:
        foreign = new_agent(other_tenant, name="Eve")
        for name in ("Eve", str(foreign.id)):
            with pytest.raises(ToolFailed, match="there is no agent"):
                client.tool("recall", query="x", agent=name)

    def test_wrong_arguments_are_named(self, client: InProcessClient) -> None:
        with pytest.raises(ToolFailed, match="limit"):
            client.tool("recall", query="x", limit=1_000)

    def test_lists_of_agents_are_bounded(
        self, tenant: Tenant, client: InProcessClient, new_agent: Any
    ) -> None:
        new_agent(tenant, name="Bea")
        first = client.tool("list_agents", limit=1)
        assert ([line["name"] for line in first["agents"]], first["more"]) == (["Ada"], True)
        named = client.tool("list_agents", name="be")
        assert ([line["name"] for line in named["agents"]], named["more"]) == (["Bea"], False)


def test_every_tool_describes_itself(client: InProcessClient) -> None:
    async def use(session: SessionCalls) -> Any:
        return (await session.client.list_tools()).tools

    for tool in client.run(use):
        assert tool.title, tool.name
        assert len(tool.description) > 40, tool.name
        assert tool.output_schema["type"] == "object", tool.name
        assert "context" not in tool.input_schema["properties"], tool.name
        assert None not in (tool.annotations.destructive_hint, tool.annotations.idempotent_hint), tool.name
        json.dumps(tool.input_schema)


def test_an_unknown_argument_is_refused(client: InProcessClient) -> None:
    with pytest.raises(ToolFailed, match="recall has no argument session; it has query, agent, limit"):
        client.tool("recall", query="the ferry", session="harbour")
    assert "memories" in client.tool("show_health", placeholder="")


class TestDocuments:
    def test_an_agent_finds_published_documents_of_its_categories(
        self, client: InProcessClient, tenant: Tenant, agent: Agent
    ) -> None:
        with tenant_transaction(tenant.id):
            for category, status in (("hr", "published"), ("it", "published"), ("hr", "draft")):
                document = DocumentFactory(name=f"{category}-{status}.md", category=category, status=status)
                DocumentVersionFactory(document=document)
        listed = client.tool("list_documents", limit=1)
        assert (len(listed["documents"]), listed["more"]) == (1, True)
        with tenant_transaction(tenant.id):
            set_categories(agent_id=agent.id, categories=["hr"], actor=ACTOR)
        (line,) = client.tool("list_documents")["documents"]
        assert line["name"] == "hr-published.md"
        assert client.tool("list_documents", category="it")["documents"] == []
        part = client.tool("read_document", document=line["name"], start=2, length=3)
        assert (part["text"], part["length"]) == ("The", 14)
        for hidden in ("it-published.md", "hr-draft.md", "missing.md"):
            with pytest.raises(ToolFailed, match=f"no document '{hidden}'"):
                client.tool("read_document", document=hidden)


def test_the_guide_lists_every_tool() -> None:
    guide = (ROOT / "docs/how-to/use-as-memory.md").read_text(encoding="utf-8")
    assert [tool.name for tool in TOOLS if f"`{tool.name}`" not in guide] == []
