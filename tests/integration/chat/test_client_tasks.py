"""Tasks of clients: turns that are found by their ids, and canceled."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.agents.models import Agent
from apps.calls.models import CallStatus
from apps.contacts.models import ChatMessage, ChatSession
from apps.contacts.services import client_tasks
from apps.contacts.services.chat import answer_turn
from apps.contacts.services.client_tasks import (
    TaskClient,
    TaskQuery,
    begin_task,
    cancel_task,
    list_tasks,
    read_task,
)
from apps.contacts.services.partial_replies import WITHHELD, stored_answer
from apps.heartbeats.services.calls.calls import execute_call
from apps.memories.models import Memory
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import tenant_transaction
from arbor.contacts.client_tasks import ClientTask, TaskState
from arbor.errors import NotFound, TransitionIllegal
from arbor.memory.recall.recall_request import RecallRequest
from arbor.models.ports import ModelRequest
from tests.factories.contacts import ChatMessageFactory, ChatSessionFactory
from tests.integration.chat.conftest import Script, calls_of, model_answer
from tests.support.threads import in_own_connection


@pytest.fixture
def client(agent: Agent) -> TaskClient:
    """Return a client of the agent."""
    return TaskClient(agent_id=agent.id, person="token:partner")


def begin(agent: Agent, client: TaskClient, text: str = "When is the tide?", **fields: str) -> ClientTask:
    with tenant_transaction(agent.tenant_id):
        return begin_task(client=client, text=text, **{"message_id": "m1", **fields})


def read(agent: Agent, client: TaskClient, task: ClientTask) -> ClientTask:
    with tenant_transaction(agent.tenant_id):
        return read_task(client=client, task_id=UUID(task.id))


def cancel(agent: Agent, client: TaskClient, task: ClientTask) -> ClientTask:
    with tenant_transaction(agent.tenant_id):
        return cancel_task(client=client, task_id=UUID(task.id))


def answer(agent: Agent, task: ClientTask) -> bool:
    return answer_turn(tenant_id=agent.tenant_id, turn_id=UUID(task.id), execute=execute_call)


def test_a_canceled_task_asks_no_model(agent: Agent, client: TaskClient, scripted: Script) -> None:
    model = scripted(model_answer("At nine."))
    task = begin(agent, client)
    assert cancel(agent, client, task).state is TaskState.CANCELED
    assert not answer(agent, task)
    assert model.requests == []
    with pytest.raises(TransitionIllegal, match="has ended"):
        cancel(agent, client, task)
    # The conversation goes on.
    following = begin(agent, client, "And now?", message_id="m2", context=task.context)
    assert answer(agent, following)
    assert read(agent, client, following).state is TaskState.COMPLETED


def test_a_reply_after_the_cancel_is_not_used(agent: Agent, client: TaskClient, scripted: Script) -> None:
    task = begin(agent, client)

    def reply(_request: ModelRequest) -> str:
        in_own_connection(lambda: cancel(agent, client, task)).join(20)
        return model_answer("At nine.")

    scripted(reply)
    answer(agent, task)
    (call,) = calls_of(agent)
    assert (call.status, call.error_kind) == (CallStatus.FAILED, "Canceled")
    assert read(agent, client, task).state is TaskState.CANCELED
    with tenant_transaction(agent.tenant_id):
        assert ChatMessage.objects.count() == 2
        remembered = Memory.objects.filter(agent_id=agent.id, session__startswith="chat:")
        assert [memory.content for memory in remembered] == ["When is the tide?"]


def test_an_answer_that_is_being_stored_cannot_be_canceled(
    agent: Agent, client: TaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = begin(agent, client)
    monkeypatch.setattr(client_tasks, "cancel_maintenance_call", lambda **_: False)
    with pytest.raises(TransitionIllegal, match="being stored"):
        cancel(agent, client, task)
    assert read(agent, client, task).state is TaskState.SUBMITTED


def test_a_repeated_message_begins_no_conversation(agent: Agent, client: TaskClient) -> None:
    tasks = [begin(agent, client), begin(agent, client), begin(agent, client, message_id="m2")]
    assert tasks[0] == tasks[1]
    assert tasks[2].context != tasks[0].context
    with tenant_transaction(agent.tenant_id):
        assert ChatSession.objects.count() == 2
    stranger = TaskClient(agent_id=agent.id, person="token:stranger")
    with pytest.raises(NotFound):
        read(agent, stranger, tasks[0])


def test_an_agent_that_was_destroyed_gets_no_task(agent: Agent) -> None:
    with pytest.raises(NotFound, match="there is no agent"):
        begin(agent, TaskClient(agent_id=uuid4(), person="token:partner"))


def test_the_turn_of_a_task_is_recalled_later(agent: Agent, client: TaskClient, scripted: Script) -> None:
    scripted(model_answer("Nora keeps the lighthouse."))
    answer(agent, begin(agent, client, "Nora keeps the lighthouse of Skerry. Remember that."))
    request = RecallRequest(agent_id=agent.id, text="Who keeps the lighthouse?")
    found = [UUID(str(row.id)) for row in recall(tenant_id=agent.tenant_id, request=request)]
    with tenant_transaction(agent.tenant_id):
        assert Memory.objects.get(content__contains="of Skerry").id in found


def test_a_task_whose_answer_a_reflex_withheld_is_rejected(
    agent: Agent, client: TaskClient, scripted: Script
) -> None:
    scripted(model_answer(f"The key of the harbour is ghp_{'a' * 36}."))
    task = begin(agent, client, "What is the key?")
    answer(agent, task)
    assert read(agent, client, task).state is TaskState.REJECTED
    with tenant_transaction(agent.tenant_id):
        totals = {
            state: list_tasks(client=client, query=TaskQuery(limit=5, state=state)).total
            for state in (TaskState.REJECTED, TaskState.COMPLETED)
        }
    assert totals == {TaskState.REJECTED: 1, TaskState.COMPLETED: 0}


def test_statements_and_rows_agree_on_withheld_answers(agent: Agent) -> None:
    details: list[dict[str, Any]] = [
        {},
        {"canceled": True},
        {"boundaries": []},
        {"boundaries": [{"name": "tide"}]},
        {"boundaries": [{"name": "tide", "withheld": False}]},
        {"boundaries": [{"withheld": False}, {"withheld": True}]},
        {"boundaries": [{"withheld": True}], "reflex": {"what": "a secret"}},
        {"reflex": {"what": "a secret"}},
        {"reflex": None},
    ]
    with tenant_transaction(agent.tenant_id):
        session = ChatSessionFactory(agent=agent)
        rows = [ChatMessageFactory(session=session, detail=detail) for detail in details]
        withheld = set(ChatMessage.objects.filter(WITHHELD).values_list("id", flat=True))
    assert {row.id for row in rows if stored_answer(row).is_withheld} == withheld
    assert len(withheld) == 4
