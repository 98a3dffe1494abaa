"""The Python client against a real server, and its operations against those of the API."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

import arbor_client
from apps.agents.services.templates import seed_builtin_templates
from apps.api.api import PATH
from apps.tenants.models import Role, Tenant
from arbor_client import Arbor, AsyncArbor
from scripts.api_reference import REFERENCE, operation_of, operations_of_api, reference, requests_of_client
from tests.integration.api.test_server import server
from tests.support.api import caller_of

__all__ = ["server"]

#: Operations of the API that the client has no method for, one a line.
WITHOUT_METHOD = Path(__file__).with_name("operations_without_client_method.txt")
_ID = UUID("01890000-0000-7000-8000-000000000001")


def test_every_method_of_the_client_has_its_operation() -> None:
    strangers = [
        f"{name}: {method} {path}"
        for name, method, path in requests_of_client()
        if operation_of(method, PATH + path) is None
    ]
    assert strangers == []


def test_operations_without_a_method_are_listed() -> None:
    served = {operation_of(method, PATH + path) for _, method, path in requests_of_client()}
    listed = set(WITHOUT_METHOD.read_text(encoding="utf-8").split("\n")) - {""}
    assert sorted(operations_of_api().keys() - served) == sorted(listed)


def test_the_reference_is_up_to_date() -> None:
    text = reference()

    assert REFERENCE.read_text(encoding="utf-8") == text
    assert text.count("\n| `") == len(operations_of_api())


def test_the_reference_names_role_and_method() -> None:
    rows = reference().splitlines()
    (recall,) = (row for row in rows if "`POST /agents/{agent_id}/recall`" in row)
    assert recall.endswith("| viewer | `memories.recall` |")
    assert any("| viewer* |" in row for row in rows)
    assert any("| owner |" in row for row in rows)


def test_a_program_uses_a_real_server(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    with Arbor(server, caller_of(tenant, Role.OWNER).token) as arbor:
        assert arbor.tenant.token().role == "owner"
        vega = arbor.agents.create("Vega", template="Scout", start=True)
        arbor.agents.create("Deneb", template="Scout")
        assert [agent.name for agent in arbor.agents.list()] == ["Deneb", "Vega"]
        assert arbor.agents.change_status(vega.id, "pause").status == "paused"
        with pytest.raises(arbor_client.Conflict, match="paused"):
            arbor.agents.change_status(vega.id, "pause")
        with pytest.raises(arbor_client.Missing):
            arbor.agents.get(_ID)
        with pytest.raises(arbor_client.Unprocessable) as caught:
            arbor.agents.create("x" * 200, template="Scout")
        assert any("name" in field for field in caught.value.fields)
        assert arbor.agents.destroy(vega.id, confirm="Vega").id == vega.id
    with Arbor(server, "arbor_wrong") as stranger, pytest.raises(arbor_client.TokenInvalid):
        stranger.tenant.get()


def test_a_program_works_with_an_agent(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    with Arbor(server, caller_of(tenant, Role.OWNER).token) as arbor:
        vega = arbor.agents.create("Vega", template="Scout", start=True).id
        stored = arbor.memories.remember(vega, "The ferry leaves at noon.", importance=0.8)
        assert arbor.memories.recall(vega, "When does the ferry leave?", limit=1).results[0].id == stored.id
        assert stored.id in [memory.id for memory in arbor.memories.list(vega, min_importance=0.7)]
        assert arbor.memories.get(vega, stored.id).recalled == 0
        assert arbor.memories.archive(vega, [stored.id], reason="A test.").changed == 1
        assert arbor.memories.restore(vega, [stored.id], reason="A test.").changed == 1
        goal = arbor.goals.add(vega, "Chart the reef", state="active")
        changed = arbor.goals.change(vega, goal.id, note="Half.", fraction=0.5)
        assert (changed.fraction, arbor.goals.get(vega, goal.id).fraction) == (0.5, 0.5)
        assert goal.id in [listed.id for listed in arbor.goals.list(vega)]
        proposal = arbor.proposals.add(vega, "Ferries leave at noon.")
        assert arbor.proposals.decide(vega, proposal.id, "reject", reason="No.").status == "rejected"
        assert list(arbor.proposals.list(vega, status="pending")) == []
        assert arbor.heartbeats.notify(vega, "It rains.").kind == "environment"
        assert list(arbor.heartbeats.list(vega)) == []
        # No worker answers here: the client stops waiting.
        said = arbor.conversations.say(vega, "Hello.", wait_s=0.5)
        assert said.answer is None
        assert arbor.conversations.turn(vega, said.turn.id).turn == said.turn
        assert [turn.content for turn in arbor.conversations.turns(vega).items] == ["Hello."]


def test_an_asynchronous_program_uses_a_real_server(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    token = caller_of(tenant, Role.OWNER).token

    async def use() -> list[str]:
        async with AsyncArbor(server, token) as arbor:
            names = ("Altair", "Deneb", "Vega")
            await asyncio.gather(*(arbor.agents.create(name, template="Scout") for name in names))
            return [agent.name async for agent in arbor.agents.list()]

    assert asyncio.run(use()) == ["Altair", "Deneb", "Vega"]
