"""The audit log, which has the same line for an act by command line, API, MCP or console."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.selves.models import Proposal
from apps.selves.services.decisions import ProposalVerdict, decide_proposals
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.memories import MemoryFactory
from tests.factories.selves import ProposalFactory
from tests.integration.cli.conftest import Arbor
from tests.integration.mcp_server.conftest import InProcessClient
from tests.support.api import API_SETTINGS, Caller, caller_of


@pytest.fixture
def api(tenant: Tenant) -> Iterator[Caller]:
    with override_settings(**API_SETTINGS):
        yield caller_of(tenant, Role.OPERATOR)


@pytest.fixture
def acts(tenant: Tenant) -> Callable[[], list[tuple[str, str, dict[str, Any]]]]:
    """Return a function that returns the acts audited since its last call: kind of actor, message, action and keys."""
    returned: set[Any] = set()

    def read() -> list[tuple[str, str, dict[str, Any]]]:
        with tenant_transaction(tenant.id):
            rows = [row for row in AuditEvent.objects.order_by("id") if row.id not in returned]
        returned.update(row.id for row in rows)
        return [
            (row.actor.split(":")[0], row.message, {"action": row.action, "keys": sorted(row.detail)})
            for row in rows
            if row.action == "operator.act"
        ]

    return read


def assert_same(read: Callable[[], list[tuple[str, str, dict[str, Any]]]], *actors: str) -> list[str]:
    """Assert that the acts since the last call are the same by each actor, and return their messages."""
    rows = read()
    by_actor = {actor: [row[1:] for row in rows if row[0] == actor] for actor in actors}
    assert len(rows) == sum(map(len, by_actor.values())), rows
    first = by_actor[actors[0]]
    assert all(other == first for other in by_actor.values()), by_actor
    return [message for message, _ in first]


def test_goals_are_audited_alike(
    arbor: Arbor, api: Caller, client: InProcessClient, agent: Agent, acts: Callable[..., Any]
) -> None:
    path = f"/agents/{agent.id}/goals"
    acts()
    by_cli = arbor("goal", "add", agent.name, "Find the ford", "--state", "queued", "--json").json["id"]
    arbor("goal", "note", agent.name, by_cli, "Half.", "--progress", "0.5")
    arbor("goal", "move", agent.name, by_cli, "abandoned", "--reason", "Dry.")
    by_api = api.post(path, {"title": "Find the ford", "state": "queued"}).json()["id"]
    api.send("patch", f"{path}/{by_api}", {"note": "Half.", "fraction": 0.5})
    api.send("patch", f"{path}/{by_api}", {"state": "abandoned", "reason": "Dry."})
    by_mcp = client.tool("add_goal", title="Find the ford", state="queued")["id"]
    client.tool("update_goal", goal=by_mcp, note="Half.", progress=0.5)
    client.tool("update_goal", goal=by_mcp, state="abandoned", reason="Dry.")
    assert assert_same(acts, "cli", "token", "mcp") == [
        "added goal 'Find the ford', queued",
        "noted on goal 'Find the ford': Half. (50% done)",
        "moved goal 'Find the ford' from queued to abandoned: Dry.",
    ]


def test_plans_are_audited_alike(arbor: Arbor, api: Caller, agent: Agent, acts: Callable[..., Any]) -> None:
    goal = arbor("goal", "add", agent.name, "Ford", "--json").json["id"]
    path = f"/agents/{agent.id}/goals/{goal}/plans"
    step = {"action": "recall", "description": "the bank"}
    acts()
    arbor(
        "goal", "plan", "add", agent.name, goal, "--draft", "--step", "recall: the bank", "--needs", "a boat"
    )
    arbor("goal", "plan", "start", agent.name, goal)
    arbor("goal", "plan", "met", agent.name, goal, "a boat")
    arbor("goal", "plan", "abandon", agent.name, goal, "--reason", "No boat.")
    assert api.post(path, {"steps": [step], "draft": True, "needs": ["a boat"]}).status_code == 201
    assert api.post(f"{path}/start").json()["status"] == "active"
    assert api.post(f"{path}/met", {"dependency": "a boat"}).json()["met"] == ["a boat"]
    assert api.post(f"{path}/abandon", {"reason": "No boat."}).json()["status"] == "abandoned"
    assert len(assert_same(acts, "cli", "token")) == 4


def test_pins_are_audited_alike(
    arbor: Arbor, api: Caller, tenant: Tenant, agent: Agent, acts: Callable[..., Any]
) -> None:
    with tenant_transaction(tenant.id):
        rain = str(MemoryFactory(agent=agent, content="Rain.").id)
    change = {"ids": [rain], "reason": "House rule."}
    acts()
    arbor("memory", "pin", agent.name, rain, "--reason", "House rule.")
    arbor("memory", "unpin", agent.name, rain, "--reason", "House rule.")
    assert api.post(f"/agents/{agent.id}/memories/pin", change).json() == {"changed": 1}
    assert api.post(f"/agents/{agent.id}/memories/unpin", change).json() == {"changed": 1}
    assert assert_same(acts, "cli", "token") == [
        "pinned 1 memory: House rule.",
        "unpinned 1 memory: House rule.",
    ]


def test_relations_are_audited_alike(
    arbor: Arbor,
    api: Caller,
    client: InProcessClient,
    tenant: Tenant,
    agent: Agent,
    acts: Callable[..., Any],
) -> None:
    with tenant_transaction(tenant.id):
        rain, flood = (str(MemoryFactory(agent=agent, content=text).id) for text in ("Rain.", "Flood."))
    ends = {"source": {"kind": "memory", "id": rain}, "target": {"kind": "memory", "id": flood}}
    acts()
    arbor("memory", "graph", "relate", agent.name, rain, "causes", flood)
    arbor("memory", "graph", "unrelate", agent.name, rain, flood)
    api.post(f"/agents/{agent.id}/relations", {**ends, "relation": "causes"})
    assert api.post(f"/agents/{agent.id}/relations/remove", ends).json() == {"removed": 1}
    assert assert_same(acts, "cli", "token") == [
        f"related two things of {agent.name}: memory:{rain} causes memory:{flood}",
        f"removed 1 relation of {agent.name}",
    ]
    client.tool("connect", source=rain, relation="causes", target=flood)
    assert assert_same(acts, "mcp") == [
        f"related two things of {agent.name}: memory:{rain} causes memory:{flood}"
    ]


def test_decisions_are_audited_alike(
    arbor: Arbor,
    api: Caller,
    client: InProcessClient,
    tenant: Tenant,
    agent: Agent,
    acts: Callable[..., Any],
) -> None:
    with tenant_transaction(tenant.id):
        by_cli, by_api, by_mcp, by_console = (
            ProposalFactory(agent=agent, kind="fact", change={}, content="Ben plays.", status="pending")
            for _ in range(4)
        )
    acts()
    arbor("self", "proposal", "reject", agent.name, str(by_cli.id), "--reason", "No.")
    api.post(f"/agents/{agent.id}/proposals/{by_api.id}/reject", {"reason": "No."})
    client.tool("decide_proposal", proposal=str(by_mcp.id), decision="reject", reason="No.")
    with tenant_transaction(tenant.id):
        decide_proposals(
            proposal_ids=[by_console.id],
            decision=ProposalVerdict.REJECT,
            decided_by="user:pat",
            reason="No.",
        )
        assert set(Proposal.objects.values_list("status", flat=True)) == {"rejected"}
    assert len(assert_same(acts, "cli", "token", "mcp", "user")) == 1


def test_a_repeated_acceptance_is_audited_once(
    arbor: Arbor, tenant: Tenant, agent: Agent, acts: Callable[..., Any]
) -> None:
    with tenant_transaction(tenant.id):
        proposal = ProposalFactory(
            agent=agent, kind="fact", change={}, content="Ben plays.", status="pending"
        )
    acts()
    for _ in range(2):
        assert arbor("self", "proposal", "accept", agent.name, str(proposal.id)).code == 0
    assert assert_same(acts, "cli") == ["accepted the proposal fact: Ben plays."]
