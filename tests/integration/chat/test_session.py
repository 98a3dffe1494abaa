"""Conversations, which pause the agent's schedule; after a significant conversation a heartbeat follows at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import F

from apps.agents.models import Agent, AgentState
from apps.audit.models import AuditEvent
from apps.calls.models import ExternalCall
from apps.console.pages.fleet import read_fleet
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services.chat import end_session, open_session, receive_turn
from apps.contacts.services.chat_sweep import LONGEST_WAIT, _sweep_conversation, close_conversations
from apps.fleet.contact import message_agent
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.reports.status import fleet_status
from apps.heartbeats.services.reports.thoughts import thoughts_of
from apps.heartbeats.services.working_memory import rebuild_working_memory
from apps.memories.models import CodeSnippet, Memory
from apps.memories.services.retention.archive import archive, purge
from apps.queues import Task
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import OPS, tenant_transaction
from arbor.contacts.values import Speaker
from arbor.errors import Invalid, TransitionIllegal
from arbor.heartbeat.situation import Situation
from arbor.heartbeat.working_memory import ENGAGED_BY_ACTION
from config.cli.agents.views import agent_value
from tests.factories.heartbeats import HeartbeatFactory
from tests.integration.chat.conftest import Script, Talk, model_answer, open_chat
from tests.integration.heartbeats.conftest import REST, heartbeats_of, make_due, run_heartbeat, schedule_of
from tests.integration.heartbeats.fleet import Fleet


def age_conversations(agent: Agent, time: timedelta) -> None:
    """Move the agent's conversations and the end of its pause into the past."""
    with tenant_transaction(agent.tenant_id):
        ChatSession.objects.filter(agent_id=agent.id).update(last_at=F("last_at") - time)
        type(agent.schedule).objects.filter(agent_id=agent.id).update(paused_until=F("paused_until") - time)


def end_conversation(agent: Agent, session: ChatSession) -> Any:
    with tenant_transaction(agent.tenant_id):
        return end_session(session_id=session.id)


def test_an_agent_is_due_only_once_its_conversation_is_idle(
    agent: Agent, fleet: Fleet, talk: Talk, scripted: Script
) -> None:
    scripted(model_answer("Yes."))
    talk("Are you there?")
    make_due(agent)

    assert fleet.dispatch().due == 0
    age_conversations(agent, timedelta(seconds=301))
    assert fleet.dispatch().due == 1


def test_an_agent_in_a_conversation_is_not_shown_as_due(agent: Agent, talk: Talk, scripted: Script) -> None:
    scripted(model_answer("Yes."))
    talk("Are you there?")
    make_due(agent, overdue_by=timedelta(minutes=5))

    heartbeats = fleet_status().heartbeats
    assert (heartbeats.due, heartbeats.oldest_due_s) == (0, 0)
    assert heartbeats.next_due_in_s is not None
    assert heartbeats.next_due_in_s > 0
    with tenant_transaction(agent.tenant_id):
        fleet = read_fleet()
        row = Agent.objects.select_related("state", "schedule", "tenant").get(id=agent.id)
    assert (fleet.due, fleet.oldest_due) == (0, None)
    assert datetime.fromisoformat(agent_value(row)["next_due_at"]) > datetime.now(UTC)

    age_conversations(agent, timedelta(seconds=301))
    heartbeats = fleet_status().heartbeats
    assert heartbeats.due == 1
    assert 0 < heartbeats.oldest_due_s < 300, "counted from the end of the conversation"
    with tenant_transaction(agent.tenant_id):
        assert read_fleet().due == 1


def test_a_heartbeat_follows_a_significant_conversation_at_once(
    agent: Agent, fleet: Fleet, talk: Talk, scripted: Script
) -> None:
    model = scripted(model_answer("I will."), REST)
    talk("Remember this: the gate code is 4711.")

    ended = end_conversation(agent, open_chat(agent))

    assert ended.heartbeat_follows
    assert ended.significance >= 0.6
    assert schedule_of(agent).paused_until is None
    assert fleet.dispatch().due == 1
    fleet.run()
    (heartbeat,) = heartbeats_of(agent)
    assert (heartbeat.trigger, heartbeat.status) == ("chat", HeartbeatStatus.DONE)
    assert "the gate code is 4711" in model.requests[-1].messages[0].content
    # No conversation is open any more.
    assert not Situation.model_validate(heartbeat.situation).environment.user_waiting


def test_no_heartbeat_follows_small_talk(agent: Agent, fleet: Fleet, talk: Talk, scripted: Script) -> None:
    scripted(model_answer("Hello!"))
    talk("Hello")

    ended = end_conversation(agent, open_chat(agent))

    assert not ended.heartbeat_follows
    assert 0 < ended.significance < 0.35
    assert fleet.dispatch().due == 0
    assert end_conversation(agent, ended.session).heartbeat_follows is False, "a second end changes nothing"


def test_a_consolidating_heartbeat_follows_ten_turns(
    agent: Agent, fleet: Fleet, talk: Talk, scripted: Script
) -> None:
    scripted(*[model_answer("Yes.")] * 10, REST)
    for turn in range(10):
        talk(f"ok {turn}")

    assert end_conversation(agent, open_chat(agent)).heartbeat_follows
    assert fleet.dispatch().due == 1
    fleet.run()

    (heartbeat,) = heartbeats_of(agent)
    assert heartbeat.mode == "consolidation"
    with tenant_transaction(agent.tenant_id):
        memory = AgentState.objects.get(agent_id=agent.id).working_memory
    assert memory["talked"] == 0
    assert memory["current_human"] is None


def test_the_schedule_stays_paused_while_another_person_talks(
    agent: Agent, talk: Talk, scripted: Script
) -> None:
    scripted(model_answer("Yes."), repeat=True)
    talk("One.", person="cli:nora")
    talk("Two.", person="user:orson")

    end_conversation(agent, open_chat(agent, "cli:nora"))

    paused = schedule_of(agent).paused_until
    assert paused is not None
    assert paused > datetime.now(UTC)


def test_the_sweep_closes_idle_conversations(agent: Agent, talk: Talk, scripted: Script) -> None:
    scripted(model_answer("Yes."))
    talk("Could you please look into the harbour? We decided to sail on Friday.")
    assert close_conversations().done == 0
    age_conversations(agent, timedelta(seconds=301))

    assert close_conversations().done == 1

    with tenant_transaction(agent.tenant_id):
        session = ChatSession.objects.get()
    assert session.ended_at is not None
    assert session.significance is not None
    assert schedule_of(agent).next_trigger == "chat"


def test_the_sweep_keeps_a_conversation_that_goes_on_meanwhile(
    agent: Agent, talk: Talk, scripted: Script
) -> None:
    scripted(model_answer("Yes."), repeat=True)
    talk("Are you there?")
    age_conversations(agent, timedelta(seconds=301))
    with tenant_transaction(agent.tenant_id):
        listed = ChatSession.objects.get()
        ChatSession.objects.update(last_at=datetime.now(UTC))

    assert not _sweep_conversation(agent.tenant_id, listed)

    with tenant_transaction(agent.tenant_id):
        assert ChatSession.objects.get().ended_at is None


def test_the_sweep_resends_a_lost_turn_and_fails_it_after_an_hour(
    agent: Agent, fleet: Fleet, scripted: Script
) -> None:
    scripted(model_answer("Yes."))
    session = open_chat(agent)
    with tenant_transaction(agent.tenant_id):
        receive_turn(session_id=session.id, text="Are you there?")
    fleet.messages.clear()
    close_conversations()
    assert fleet.messages == [], "the message may still be queued"

    age_conversations(agent, timedelta(seconds=61))
    close_conversations()
    assert [message.task for message in fleet.messages] == [Task.ANSWER]

    age_conversations(agent, LONGEST_WAIT)
    close_conversations()
    with tenant_transaction(agent.tenant_id):
        assert "no worker answered within 60 minutes" in ChatMessage.objects.get(speaker=Speaker.AGENT).error


def test_a_conversation_continues_until_it_is_idle(agent: Agent) -> None:
    first = open_chat(agent)

    assert open_chat(agent).id == first.id
    assert open_chat(agent, "user:orson").id != first.id
    age_conversations(agent, timedelta(seconds=301))
    assert open_chat(agent).id != first.id


def test_a_closed_conversation_accepts_no_turn(agent: Agent) -> None:
    session = open_chat(agent)
    end_conversation(agent, session)

    with tenant_transaction(agent.tenant_id), pytest.raises(TransitionIllegal, match="is over"):
        receive_turn(session_id=session.id, text="One more thing.")


@pytest.mark.parametrize("person", ["", "a\nb", "x" * 201])
def test_a_person_needs_a_valid_name(agent: Agent, person: str) -> None:
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid):
        open_session(agent_id=agent.id, person=person)


def test_agents_of_a_suspended_tenant_begin_no_conversation(agent: Agent, tenant: Tenant) -> None:
    Tenant.objects.using(OPS).filter(id=tenant.id).update(status=TenantStatus.SUSPENDED)

    with tenant_transaction(tenant.id), pytest.raises(TransitionIllegal, match="suspended"):
        open_session(agent_id=agent.id, person="cli:nora")


def test_thoughts_of_heartbeats_and_conversations_are_listed(
    agent: Agent, fleet: Fleet, talk: Talk, scripted: Script
) -> None:
    scripted(REST, model_answer("Yes.", thinking="Nora is kind."))
    run_heartbeat(fleet, agent)
    talk("Are you there?")

    with tenant_transaction(agent.tenant_id):
        thoughts = thoughts_of(agent_id=agent.id)

    assert [(thought.origin, thought.text) for thought in thoughts] == [
        ("chat", "Nora is kind."),
        ("heartbeat", "All is well."),
    ]
    with tenant_transaction(agent.tenant_id), pytest.raises(Invalid):
        thoughts_of(agent_id=agent.id, limit=51)


def test_a_working_memory_is_rebuilt_from_the_records(
    agent: Agent, fleet: Fleet, talk: Talk, scripted: Script
) -> None:
    heartbeat = REST.replace(
        '"memory_notes": []', '"memory_notes": [], "concerns": ["the gauge"], "curiosity": ["why?"]'
    )
    scripted(heartbeat, model_answer("Yes.", thinking="Nora is kind."))
    run_heartbeat(fleet, agent)
    talk("Are you there?")
    with tenant_transaction(agent.tenant_id):
        AgentState.objects.filter(agent_id=agent.id).update(working_memory={"concerns": ["nonsense"]})
        assert rebuild_working_memory(agent_id=agent.id, actor="test", dry_run=True).before.concerns == [
            "nonsense"
        ]
        assert AgentState.objects.get(agent_id=agent.id).working_memory == {"concerns": ["nonsense"]}

        rebuilt = rebuild_working_memory(agent_id=agent.id, actor="test")

        stored = AgentState.objects.get(agent_id=agent.id).working_memory
        assert AuditEvent.objects.filter(message__endswith=" from 1 heartbeat and 1 turn").exists()
    assert (rebuilt.heartbeats, rebuilt.turns) == (1, 1)
    assert [thought["text"] for thought in stored["thoughts"]] == ["All is well.", "Nora is kind."]
    assert (stored["concerns"], stored["curiosity"]) == (["the gauge"], ["why?"])
    assert (stored["current_human"], stored["name"], stored["talked"]) == ("nora", "Ada", 1)


def test_thoughts_of_the_template_survive_a_rebuild(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    with tenant_transaction(agent.tenant_id):
        first = AgentState.objects.get(agent_id=agent.id).working_memory
    settled, *unresolved = first["curiosity"]
    scripted(
        REST.replace(
            '"memory_notes": []',
            f'"memory_notes": [], "curiosity": ["why?"], "resolved": {json.dumps([settled])}',
        )
    )
    run_heartbeat(fleet, agent)
    with tenant_transaction(agent.tenant_id):
        rebuilt = rebuild_working_memory(agent_id=agent.id, actor="test")
        repeated = rebuild_working_memory(agent_id=agent.id, actor="test")

    assert unresolved
    assert rebuilt.after.curiosity == [*unresolved, "why?"] == rebuilt.before.curiosity
    assert [thought.text for thought in rebuilt.after.thoughts] == [
        *(thought["text"] for thought in first["thoughts"]),
        "All is well.",
    ]
    assert (repeated.after.curiosity, repeated.after.thoughts) == (
        rebuilt.after.curiosity,
        rebuilt.after.thoughts,
    )


def test_a_free_action_counts_as_work_in_a_rebuild(agent: Agent) -> None:
    recall = {"index": 0, "action": "recall", "outcome": "success", "summary": "2 memories", "cost": 0}
    with tenant_transaction(agent.tenant_id):
        before = rebuild_working_memory(agent_id=agent.id, actor="test").after
        HeartbeatFactory(agent=agent, actions=[recall])
        after = rebuild_working_memory(agent_id=agent.id, actor="test").after
    assert after.engagement == pytest.approx(before.engagement + ENGAGED_BY_ACTION)


def test_code_in_a_message_is_stored_as_a_snippet(agent: Agent, fleet: Fleet, scripted: Script) -> None:
    scripted(REST)
    with tenant_transaction(agent.tenant_id):
        message_agent(agent_id=agent.id, text="Run this:\n```sh\nmake test\n```", actor="test")
    fleet.messages.clear()
    run_heartbeat(fleet, agent)

    with tenant_transaction(agent.tenant_id):
        snippet = CodeSnippet.objects.get(agent_id=agent.id)
        assert (snippet.language, snippet.code) == ("sh", "make test")
        assert snippet.source == f"heartbeat:{Heartbeat.objects.get().id}"


def test_a_purge_empties_the_turns_and_prompts_that_quote_a_memory(
    agent: Agent, talk: Talk, scripted: Script
) -> None:
    scripted(model_answer("Noted."), model_answer("4711."), model_answer("Fine."))
    talk("The gate code is 4711, says Orson.")
    talk("What is the gate code?", person="user:orson")
    with tenant_transaction(agent.tenant_id):
        memory = Memory.objects.get(agent_id=agent.id, content__startswith="The gate code is 4711")

        archive(memory_ids=[memory.id], reason="asked", actor="cli:nora")
        purge(memory_ids=[memory.id], reason="asked", actor="cli:nora")

        assert not ChatMessage.objects.filter(content__contains="4711, says").exists()
        calls = ExternalCall.objects.filter(agent_id=agent.id, purpose="chat")
        assert [(call.request, call.sections, call.reply) for call in calls] == [({}, [], "")] * 2
    assert talk("Are you there?").content == "Fine."
