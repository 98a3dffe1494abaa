"""Memory filters of beliefs, from the service that stores them to the prompt of a heartbeat."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.selves.models import SelfChange
from apps.selves.services.beliefs import add_belief, change_filters, revise_belief
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.selves.values import BeliefCategory, BeliefRevision, BeliefStatus, NewBelief
from tests.integration.heartbeats.conftest import REST
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of, store_fact
from tests.integration.heartbeats.selves.conftest import send_message

SECTION = "## Memories that may matter now"
GOSSIP = "The harbour gossip says that the mayor drinks."
FACTS = ("The harbour bridge opens at nine.", "The harbour crane is red.", "The harbour office is closed.")


def believe(agent: Agent, *rules: dict[str, Any]) -> UUID:
    """Give the agent a belief that it is sure of, with these memory filters; return its id."""
    belief = NewBelief(
        statement="What is whispered is worth little.", category=BeliefCategory.OTHERS, confidence=1.0
    )
    with tenant_transaction(agent.tenant_id):
        belief_id: UUID = add_belief(agent_id=agent.id, belief=belief, actor="cli:ann").id
        for rule in rules:
            change_filters(belief_id=belief_id, added=rule, actor="cli:ann")
    return belief_id


def ask_about_harbour(heartbeats: HeartbeatRunner, agent: Agent) -> list[str]:
    """Ask the agent about the harbour; return the memories in its prompt, best first."""
    send_message(agent, "What do you know about the harbour?")
    shown = heartbeats.run(REST).split(SECTION)[1].split("\n## ")[0]
    return [line for line in shown.splitlines() if "harbour" in line]


@pytest.fixture
def informed(agent: Agent) -> Agent:
    """Return an agent that knows facts and gossip about the harbour."""
    for text in (*FACTS, GOSSIP):
        store_fact(agent, text)
    return agent


def test_a_belief_hides_memories_until_it_is_doubted(heartbeats: HeartbeatRunner, informed: Agent) -> None:
    assert any(GOSSIP in line for line in ask_about_harbour(heartbeats, informed))
    belief_id = believe(informed, {"effect": "hide", "patterns": ["gossip"]})
    shown = ask_about_harbour(heartbeats, informed)
    assert all(any(fact in line for line in shown) for fact in FACTS)
    assert not any(GOSSIP in line for line in shown)

    with tenant_transaction(informed.tenant_id):
        revision = BeliefRevision(status=BeliefStatus.QUESTIONED)
        revise_belief(belief_id=belief_id, revision=revision, actor="cli:ann")
    assert any(GOSSIP in line for line in ask_about_harbour(heartbeats, informed))


def test_a_belief_brings_memories_to_the_front(heartbeats: HeartbeatRunner, informed: Agent) -> None:
    believe(informed, {"effect": "favor", "patterns": ["crane*"]}, {"effect": "dim", "patterns": ["bridge"]})
    shown = ask_about_harbour(heartbeats, informed)
    assert "crane" in shown[0]


def test_an_agent_that_looks_for_a_hidden_memory_finds_it(
    heartbeats: HeartbeatRunner, informed: Agent
) -> None:
    believe(informed, {"effect": "hide", "patterns": ["gossip"]})
    search = reply_of(actions=[action_of("recall", query="harbour gossip about the mayor")])
    assert GOSSIP in heartbeats.run(search, REST)


def test_changes_of_filters_are_in_the_self_history(informed: Agent) -> None:
    belief_id = believe(informed, {"effect": "dim", "patterns": ["gossip"]})
    with tenant_transaction(informed.tenant_id):
        with pytest.raises(Invalid, match="a memory filter needs a word or a type of memory"):
            change_filters(belief_id=belief_id, added={"effect": "dim"}, actor="cli:ann")
        change_filters(belief_id=belief_id, added=None, actor="cli:ann", reason="too harsh")
        added, removed = SelfChange.objects.filter(target_id=belief_id).order_by("id")[1:]
    rules = [{"effect": "dim", "patterns": ["gossip"]}]
    assert (added.before.get("filters"), added.after["filters"]) == (None, rules)
    assert (removed.before["filters"], removed.after.get("filters"), removed.reason) == (
        rules,
        None,
        "too harsh",
    )
