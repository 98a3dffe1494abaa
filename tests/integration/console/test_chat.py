"""The console's page of conversations with an agent: roles, contents, and no request that waits for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent, HeartbeatSchedule
from apps.audit.models import AuditAction, AuditEvent
from apps.calls.models import ExternalCall
from apps.contacts.models import ChatMessage, ChatSession, PartialReply
from apps.contacts.services.chat import answer_turn
from apps.heartbeats.services.calls.calls import execute_call
from apps.queues import Task, TaskMessage, captured
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from tests.factories.agents import AgentFactory, AgentStateFactory
from tests.factories.heartbeats import ProcessFactory, ScheduleFactory
from tests.support.console import World


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    with tenant_transaction(tenant.id):
        created: Agent = AgentFactory(name="Vega", character={"name": "Vega"})
        AgentStateFactory(agent=created)
        ScheduleFactory(agent=created)
        return created


@pytest.fixture
def messages(database: None) -> Iterator[list[TaskMessage]]:
    with captured() as captured_messages:
        yield captured_messages


def chat_page(agent: Agent) -> str:
    return reverse("admin:agent-chat", args=[agent.id])


def answer(agent: Agent, messages: list[TaskMessage]) -> None:
    (message,) = messages
    assert message.task is Task.ANSWER
    answer_turn(tenant_id=agent.tenant_id, turn_id=UUID(message.arguments["turn_id"]), execute=execute_call)


def test_an_operators_turn_is_stored_and_answered_by_a_worker(
    operator: Client, agent: Agent, messages: list[TaskMessage]
) -> None:
    ProcessFactory(queues="llm,heartbeat")
    assert "Nobody has talked to it yet" in operator.get(chat_page(agent)).content.decode()
    unknown = operator.get(chat_page(agent), {"conversation": str(uuid4())}).content.decode()
    assert "No turn of that conversation is here" in unknown

    response = operator.post(chat_page(agent), {"text": "Is the river frozen?\r\nReally?"})

    assert (response.status_code, response["Location"]) == (302, f"{chat_page(agent)}#latest")
    with tenant_transaction(agent.tenant_id):
        assert not ExternalCall.objects.exists(), "the request asks no model"
        assert ChatMessage.objects.get().content == "Is the river frozen?\nReally?"
        paused = HeartbeatSchedule.objects.get(agent_id=agent.id).paused_until
        assert paused is not None
        assert paused > datetime.now(UTC)
    pending = operator.get(chat_page(agent)).content.decode()
    assert 'http-equiv="refresh"' in pending
    assert "Vega thinks…" in pending
    assert 'id="say"' not in pending

    answer(agent, messages)

    answered = operator.get(chat_page(agent)).content.decode()
    assert 'http-equiv="refresh"' not in answered
    assert "No language model is in use here" in answered
    assert 'id="reflex-notice"' in answered
    assert 'id="say"' in answered


def test_the_page_shows_a_growing_reply(operator: Client, agent: Agent, messages: list[TaskMessage]) -> None:
    ProcessFactory(queues="llm,heartbeat")
    operator.post(chat_page(agent), {"text": "When may I come?"})
    part = f"{chat_page(agent)}?part=reply"
    assert "Vega thinks…" in operator.get(part).content.decode()
    with tenant_transaction(agent.tenant_id):
        PartialReply.objects.create(
            tenant_id=agent.tenant_id,
            turn=ChatMessage.objects.get(),
            attempt=1,
            sentences=["The tide is <high>.", " Come at eight."],
        )

    growing = operator.get(part).content.decode()

    assert "The tide is &lt;high&gt;. Come at eight." in growing
    page = operator.get(chat_page(agent)).content.decode()
    assert "The tide is &lt;high&gt;. Come at eight." in page
    assert f'hx-get="{part}"' in page
    answer(agent, messages)
    assert operator.get(part)["HX-Refresh"] == "true"
    assert 'id="partial-reply"' not in operator.get(chat_page(agent)).content.decode()


def test_without_a_fleet_the_page_reports_that_no_worker_runs(
    operator: Client, agent: Agent, messages: list[TaskMessage]
) -> None:
    operator.post(chat_page(agent), {"text": "Are you there?"})

    assert "No worker has reported lately" in operator.get(chat_page(agent)).content.decode()


def test_a_refused_turn_stays_in_the_form_with_the_reason(operator: Client, agent: Agent) -> None:
    refused = operator.post(chat_page(agent), {"text": "x" * 8_001})

    text = refused.content.decode()
    assert refused.status_code == 200
    assert "a message has 1 to 8,000 characters" in text
    assert "x" * 8_001 in text
    with tenant_transaction(agent.tenant_id):
        assert not ChatSession.objects.exists(), "a conversation begins with its first turn"


def test_the_conversation_is_ended_from_the_page(
    operator: Client, agent: Agent, messages: list[TaskMessage]
) -> None:
    operator.post(chat_page(agent), {"text": "Remember this: the gate code is 4711."})
    answer(agent, messages)

    ended = operator.post(chat_page(agent), {"act": "end"}, follow=True).content.decode()

    assert "The conversation is over" in ended
    assert "a heartbeat follows at once" in ended
    with tenant_transaction(agent.tenant_id):
        schedule = HeartbeatSchedule.objects.get(agent_id=agent.id)
        assert schedule.paused_until is None
        assert schedule.next_due_at <= datetime.now(UTC)
        assert schedule.next_trigger == "chat"


def test_a_viewer_reads_but_sends_no_turn(viewer: Client, world: World) -> None:
    page = viewer.get(world.chat_page).content.decode()
    assert "You may read here" in page
    assert 'id="say"' not in page

    refused = viewer.post(world.chat_page, {"text": "Hello?"})

    assert refused.status_code == 403
    with tenant_transaction(world.tenant.id):
        assert not ChatMessage.objects.filter(content="Hello?").exists()
        assert AuditEvent.objects.filter(
            action=AuditAction.DENIED, message__contains="talk to agent"
        ).exists()


def test_a_failed_turn_shows_its_error_instead_of_an_answer(viewer: Client, world: World) -> None:
    page = viewer.get(world.chat_page).content.decode()

    assert "data-error" in page
    assert "<strong>No answer.</strong> the river" in page


def test_an_agent_of_another_tenant_is_not_found(
    as_role: Callable[[Role], Client], other_world: World, agent: Agent
) -> None:
    client = as_role(Role.OPERATOR)

    assert client.get(other_world.chat_page).status_code == 404
    assert client.post(other_world.chat_page, {"text": "Hello?"}).status_code == 404
    assert client.get(f"{chat_page(agent)}?conversation=nonsense").status_code == 404


def test_one_conversation_is_shown_alone(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        session = ChatSession.objects.get(agent_id=world.agent.id)
        other = ChatSession.objects.create(
            tenant_id=world.tenant.id,
            agent=world.agent,
            person="user:bo",
            started_at=session.started_at,
            last_at=session.last_at,
        )
        ChatMessage.objects.create(
            tenant_id=world.tenant.id,
            session=other,
            speaker=Speaker.USER,
            content="Otherwise.",
            at=other.last_at,
        )

    assert "Otherwise." in viewer.get(world.chat_page).content.decode()
    assert "Otherwise." not in viewer.get(f"{world.chat_page}?conversation={session.id}").content.decode()


def test_the_agents_page_links_to_its_conversations(viewer: Client, world: World) -> None:
    assert world.chat_page in viewer.get(world.agent_page).content.decode()
