"""Messages of users go first, and bring the heartbeat forward."""

from __future__ import annotations

from collections.abc import Callable

from apps.agents.models import Agent, Trigger
from apps.agents.services.percepts import perceive
from apps.fleet.contact import message_agent
from apps.tenants.scope import tenant_transaction
from arbor.heartbeat.situation import Situation
from arbor.models.ports import ScriptedModel
from tests.factories.contacts import OutboxMessageFactory
from tests.integration.heartbeats.conftest import REST, beats_of, make_due, schedule_of
from tests.integration.heartbeats.fleet import Fleet

type Script = Callable[..., ScriptedModel]


def test_messages_come_before_urgent_and_other_percepts(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        for number in range(7):
            perceive(agent_id=agent.id, kind="environment", content=f"Snow {number}.", actor="test")
        perceive(agent_id=agent.id, kind="interrupt", content="Stop.", actor="test")
        message_agent(agent_id=agent.id, text="Where is the ferry?", actor="test")

    make_due(agent)
    fleet.dispatch()
    fleet.run()

    (beat,) = beats_of(agent)
    situation = Situation.model_validate(beat.situation)
    assert [percept.content for percept in situation.percepts] == [
        "Snow 0.",
        "Snow 1.",
        "Snow 2.",
        "Stop.",
        "Where is the ferry?",
    ]
    assert (situation.environment.user_waiting, situation.environment.pending_percepts) == (True, 9)
    assert beat.mode == "conversation"
    assert schedule_of(agent).next_trigger == Trigger.TIMER


def test_messages_left_over_bring_the_next_heartbeat_at_once(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    model = scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        for number in range(6):
            message_agent(agent_id=agent.id, text=f"Question {number}?", actor="test")
    make_due(agent)
    fleet.dispatch()
    fleet.run()
    assert schedule_of(agent).next_trigger == Trigger.MESSAGE
    assert "Question 5?" not in model.requests[-1].messages[0].content

    assert fleet.dispatch().due == 1
    fleet.run()
    assert beats_of(agent)[-1].trigger == Trigger.MESSAGE
    assert "Question 5?" in model.requests[-1].messages[0].content
    assert fleet.dispatch().due == 0


def test_the_prompt_shows_a_percepts_detail_and_the_answered_message(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    model = scripted(REST, repeat=True)
    with tenant_transaction(agent.tenant_id):
        message = OutboxMessageFactory(agent=agent, subject="", content="Shall I go north?" + "!" * 500)
        message_agent(agent_id=agent.id, text="Yes, do.", actor="test", message_id=message.id)
        perceive(
            agent_id=agent.id,
            kind="environment",
            content="The river rises.",
            actor="test",
            # A program may name things as it likes.
            detail={"sensor": "weir 3", "message": "level", "log": "x" * 3_000},
        )
    make_due(agent)
    fleet.dispatch()
    fleet.run()

    prompt = model.requests[-1].messages[0].content
    assert "user_message: Yes, do.\n    answers what you wrote: Shall I go north?!" in prompt
    assert "!" * 300 not in prompt
    _, _, detail_text = prompt.partition("environment: The river rises.\n    with it: ")
    assert "sensor: weir 3" in detail_text
    assert "message: level" in detail_text
    assert "x" * 300 not in prompt
