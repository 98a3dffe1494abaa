"""The Python client against a real server."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

import arbor_client
from apps.tenants.models import Role, Tenant
from arbor_client import Arbor, AsyncArbor
from tests.integration.api.test_server import server
from tests.support.api import caller_of

__all__ = ["server"]

_UNKNOWN_ID = UUID("01890000-0000-7000-8000-000000000001")


def test_a_program_uses_a_real_server(server: str, tenant: Tenant, templates: None) -> None:
    with Arbor(server, caller_of(tenant, Role.OWNER).token) as arbor:
        assert arbor.tenant.token().role == "owner"
        vega = arbor.agents.create("Vega", template="Scout", start=True)
        arbor.agents.create("Deneb", template="Scout")
        assert [agent.name for agent in arbor.agents.list()] == ["Deneb", "Vega"]
        shown = arbor.agents.publish(vega.id, description="Knows the tides.")
        assert (shown.published, shown.public_description) == (True, "Knows the tides.")
        assert arbor.agents.publish(vega.id).public_description == "Knows the tides."
        assert not arbor.agents.unpublish(vega.id).published
        assert arbor.agents.pause(vega.id).status == "paused"
        with pytest.raises(arbor_client.Conflict, match="paused"):
            arbor.agents.pause(vega.id)
        with pytest.raises(arbor_client.Missing):
            arbor.agents.get(_UNKNOWN_ID)
        with pytest.raises(arbor_client.Unprocessable) as caught:
            arbor.agents.create("x" * 200, template="Scout")
        assert any("name" in field for field in caught.value.fields)
        destroyed = arbor.agents.destroy(vega.id, confirm="Vega")
        assert destroyed is not None
        assert destroyed.id == vega.id
    with Arbor(server, "arbor_wrong") as stranger, pytest.raises(arbor_client.TokenInvalid):
        stranger.tenant.get()


def test_a_program_works_with_an_agent(server: str, tenant: Tenant, templates: None) -> None:
    with Arbor(server, caller_of(tenant, Role.OWNER).token) as arbor:
        vega = arbor.agents.create("Vega", template="Scout", start=True).id
        stored = arbor.memories.remember(vega, "The ferry leaves at noon.", importance=0.8)
        assert arbor.memories.recall(vega, "When does the ferry leave?", limit=1).results[0].id == stored.id
        assert stored.id in [memory.id for memory in arbor.memories.list(vega, min_importance=0.7)]
        assert arbor.memories.get(vega, stored.id).recalled == 0
        explained = arbor.memories.why(vega, stored.id, "When does the ferry leave?", types=["episodic"])
        assert (explained.recalled, explained.reasons[0]) == (
            False,
            "it is semantic, and the filter asks for episodic",
        )
        assert arbor.agents.pause_all(reason="A test.").changed == 1
        assert arbor.agents.resume_all().changed == 1
        assert arbor.memories.archive(vega, [stored.id], reason="A test.").changed == 1
        assert arbor.memories.restore(vega, [stored.id], reason="A test.").changed == 1
        assert arbor.memories.pin(vega, [stored.id], reason="A test.").changed == 1
        pinned = arbor.memories.get(vega, stored.id)
        assert (pinned.decay_rate, pinned.pinned_at is not None, 0 < pinned.relevance <= 1) == (0, True, True)
        assert [memory.id for memory in arbor.memories.list(vega, pinned=True)] == [stored.id]
        quotas = {quota.type: quota for quota in arbor.memories.quotas(vega)}
        assert (quotas["semantic"].pinned, quotas["episodic"].quota) == (1, 10_000)
        assert arbor.memories.unpin(vega, [stored.id]).changed == 1
        assert list(arbor.memories.candidates(vega, limit=3)) == []
        goal = arbor.goals.add(vega, "Chart the reef", state="active")
        changed = arbor.goals.change(vega, goal.id, note="Half.", fraction=0.5)
        assert (changed.fraction, arbor.goals.get(vega, goal.id).fraction) == (0.5, 0.5)
        assert goal.id in [listed.id for listed in arbor.goals.list(vega)]
        proposal = arbor.proposals.add(vega, "Ferries leave at noon.")
        assert arbor.proposals.reject(vega, proposal.id, reason="No.").status == "rejected"
        assert list(arbor.proposals.list(vega, status="pending")) == []
        assert arbor.heartbeats.notify(vega, "It rains.").kind == "environment"
        assert list(arbor.heartbeats.list(vega)) == []
        # No worker answers here: the client stops waiting.
        sent = arbor.conversations.say(vega, "Hello.", wait_s=0.5)
        assert sent.answer is None
        assert arbor.conversations.turn(vega, sent.turn.id).turn == sent.turn
        assert [turn.content for turn in arbor.conversations.turns(vega)] == ["Hello."]


def test_an_asynchronous_program_uses_a_real_server(server: str, tenant: Tenant, templates: None) -> None:
    token = caller_of(tenant, Role.OWNER).token

    async def use() -> list[str]:
        async with AsyncArbor(server, token) as arbor:
            names = ("Altair", "Deneb", "Vega")
            await asyncio.gather(*(arbor.agents.create(name, template="Scout") for name in names))
            return [agent.name async for agent in arbor.agents.list()]

    assert asyncio.run(use()) == ["Altair", "Deneb", "Vega"]
