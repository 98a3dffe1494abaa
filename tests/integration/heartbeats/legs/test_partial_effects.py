"""Heartbeats that fail after their actions: cost and percepts are committed with the actions."""

from __future__ import annotations

from typing import Any

import pytest

import apps.heartbeats.services.legs.runner as runner
from apps.agents.models import Agent, AgentState, Percept
from apps.agents.services.percepts import perceive
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import HANDLERS
from arbor.heartbeat.steps.actions import act
from arbor.heartbeat.steps.inquiries import PendingWork
from arbor.pipeline.graph import heartbeat_text
from tests.integration.heartbeats.conftest import REST, heartbeats_of, lose_worker
from tests.integration.heartbeats.fleet import Fleet
from tests.integration.heartbeats.heartbeat_runner import Script, reply_of, store_memory
from tests.integration.heartbeats.test_inquiry import ANSWER, Web, reply_inquiring, the_web

__all__ = ["the_web"]


RECALL = {"action": "recall", "params": {"query": "Who keeps the lighthouse?"}}


@pytest.fixture(autouse=True)
def _percept_and_memory(agent: Agent) -> None:
    """Store a percept, and a memory that the agent can recall."""
    with tenant_transaction(agent.tenant_id):
        perceive(agent_id=agent.id, kind="environment", content="The fog lifts.", actor="test")
    store_memory(agent, "The lighthouse keeper is called Ines.")


def _assert_partial_effects(agent: Agent, *, spent: float) -> Heartbeat:
    """Check that the agent's heartbeat has failed, was charged for, and has consumed its percepts; return it."""
    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.status == HeartbeatStatus.FAILED
    assert heartbeat.reason.endswith("(its earlier actions remain)")
    assert (heartbeat.energy_start, heartbeat.energy_end) == (20.0, 20.0 - spent)
    with tenant_transaction(agent.tenant_id):
        state = AgentState.objects.get(agent_id=agent.id)
        assert (state.energy, state.heartbeats) == (20.0 - spent, 0)
        assert [percept.heartbeat_id for percept in Percept.objects.filter(agent_id=agent.id)] == [
            heartbeat.id
        ]
    return heartbeat


def test_a_fault_in_a_round_trip_keeps_effects_of_the_first(
    agent: Agent, fleet: Fleet, scripted: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(reply_of(RECALL, thinking="Who was it?"), reply_of(RECALL))

    def act_once(heartbeat: HeartbeatState) -> Any:
        if heartbeat.round_trip > 1:
            raise ZeroDivisionError("on purpose")
        return act(heartbeat)

    monkeypatch.setattr(runner, "HANDLERS", {**HANDLERS, "act": act_once})
    fleet.claim(agent)
    fleet.run()

    heartbeat = _assert_partial_effects(agent, spent=1)
    assert "ZeroDivisionError: on purpose" in heartbeat.reason
    assert ([action["action"] for action in heartbeat.actions], heartbeat.reasoning) == (
        ["recall"],
        "Who was it?",
    )


def test_workers_lost_during_an_inquiry_keep_its_cost(
    agent: Agent, fleet: Fleet, scripted: Script, the_web: Web, settings: Any
) -> None:
    settings.ARBOR_MAX_ATTEMPTS = 2
    scripted(reply_inquiring(), ANSWER, REST)
    fleet.claim(agent)
    while not the_web.search.queries:
        fleet.step()

    for _ in range(2):
        lose_worker(fleet, agent)
    fleet.run()

    heartbeat = _assert_partial_effects(agent, spent=3)
    assert heartbeat.reason.startswith("given up after 2 workers were lost")
    assert [action["action"] for action in heartbeat.actions] == ["inquire_shallow"]


def test_a_fault_during_a_further_inquiry_keeps_both_round_trips(
    agent: Agent, fleet: Fleet, scripted: Script, the_web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(reply_of(RECALL, thinking="Who was it?"), reply_inquiring())
    monkeypatch.setattr(PendingWork, "resume", lambda *_: 1 / 0)
    fleet.claim(agent)
    fleet.run()

    heartbeat = _assert_partial_effects(agent, spent=4)
    assert [action["action"] for action in heartbeat.actions] == ["recall", "inquire_shallow"]
    assert (heartbeat.reasoning, heartbeat.round_trips) == ("Who was it?", 2)


def test_a_visit_limit_after_the_actions_keeps_their_effects(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(reply_of(RECALL), repeat=True)
    with tenant_transaction(agent.tenant_id):
        text = heartbeat_text().replace(
            'goals       [type="goals"', 'goals       [max_visits=1, type="goals"'
        )
        Agent.objects.filter(id=agent.id).update(pipeline=text)
    fleet.claim(agent)
    fleet.run()

    heartbeat = _assert_partial_effects(agent, spent=2)
    assert "node goals was visited once" in heartbeat.reason
    assert [action["action"] for action in heartbeat.actions] == ["recall", "recall"]
