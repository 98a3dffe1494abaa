"""The Agent2Agent protocol, by the client of the package `a2a-sdk` and a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from a2a.client import A2ACardResolver, A2AClientError, Client, ClientConfig, ClientFactory
from a2a.client.errors import AgentCardResolutionError
from a2a.types.a2a_pb2 import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.types.a2a_pb2 import (
    Role as MessageRole,
)
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError, UnsupportedOperationError

from apps.agents.models import Agent
from apps.agents.services.publication import publish_agent, unpublish_agent
from apps.contacts.models import ChatMessage
from apps.fleet.lifecycle import pause_agent
from apps.memories.models import Memory
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from arbor.errors import ModelTimeout
from tests.factories.selves import BoundaryFactory
from tests.integration.api.test_server import server
from tests.support.api import Caller, caller_of
from tests.support.chat import chat_worker, reply_text, streamed

__all__ = ["server"]

REPLY = "The tide is high now. The bridge opens at nine. Come at eight!"


@pytest.fixture
def vega_url(server: str, tenant: Tenant, vega: dict[str, Any]) -> str:
    """Publish Vega, and return the address of its endpoint."""
    with tenant_transaction(tenant.id):
        publish_agent(agent_id=UUID(vega["id"]), actor="test")
    return f"{server}/a2a/{tenant.id}/{vega['id']}"


@pytest.fixture
def token(tenant: Tenant, vega: dict[str, Any]) -> str:
    """Return a token for tasks of Vega alone."""
    return caller_of(tenant, Role.VIEWER, agent_id=UUID(vega["id"]), tasks_only=True).token


@asynccontextmanager
async def connected(url: str, token: str, *, version: str = "1.0", **options: Any) -> AsyncIterator[Client]:
    """Discover an agent as other agents do, and connect to it by a version of the protocol."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(timeout=60, headers=headers) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        if version != "1.0":
            served = [
                interface for interface in card.supported_interfaces if interface.protocol_version == version
            ]
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(served)
        yield ClientFactory(ClientConfig(httpx_client=http, **options)).create(card)


def message_request(text: str, message_id: str = "m1", **fields: Any) -> SendMessageRequest:
    """Return a request with a message."""
    return SendMessageRequest(
        message=Message(message_id=message_id, role=MessageRole.ROLE_USER, parts=[Part(text=text)], **fields),
        configuration=SendMessageConfiguration(accepted_output_modes=["text/plain"]),
    )


async def events_of(client: Client, request: SendMessageRequest) -> list[StreamResponse]:
    """Send a message, and return all events."""
    return [event async for event in client.send_message(request)]


async def task_after(client: Client, request: SendMessageRequest) -> Task:
    """Send a message, and return the task of the last event."""
    return (await events_of(client, request))[-1].task


def answer_of(task: Task) -> str:
    """Return the text of a task's answer."""
    return "".join(part.text for artifact in task.artifacts for part in artifact.parts)


def text_of(events: list[StreamResponse]) -> str:
    """Return the text that a client of a stream shows."""
    text = ""
    for event in events:
        if event.HasField("artifact_update"):
            update = event.artifact_update
            shown = "".join(part.text for part in update.artifact.parts)
            text = text + shown if update.append else shown
    return text


def test_the_card_is_discovered_without_a_token(vega_url: str, tenant: Tenant, vega: dict[str, Any]) -> None:
    async def discover() -> AgentCard:
        async with httpx.AsyncClient() as http:
            return await A2ACardResolver(http, vega_url).get_agent_card()

    card = asyncio.run(discover())
    assert (card.name, card.description) == ("Vega", "Vega: reconnaissance and orientation.")
    assert [skill.id for skill in card.skills] == ["chat", "role"]
    assert "file systems" in card.skills[1].tags
    assert {(interface.url, interface.protocol_version) for interface in card.supported_interfaces} == {
        (vega_url, "1.0"),
        (vega_url, "0.3"),
    }
    assert card.capabilities.streaming
    assert not card.capabilities.push_notifications
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "Bearer"
    with tenant_transaction(tenant.id):
        unpublish_agent(agent_id=UUID(vega["id"]), actor="test")
    with pytest.raises(AgentCardResolutionError, match="404"):
        asyncio.run(discover())


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_client_of_the_sdk_converses(
    vega_url: str,
    token: str,
    tenant: Tenant,
    vega: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    version: str,
) -> None:
    async def talk() -> None:
        async with connected(vega_url, token, version=version) as client:
            first = await events_of(client, message_request("When may I come? I am called Nora."))
            assert first[0].task.id
            assert text_of(first) == REPLY
            states = [event.status_update.status.state for event in first if event.HasField("status_update")]
            assert states[-1] == TaskState.TASK_STATE_COMPLETED
            known = await client.get_task(GetTaskRequest(id=first[0].task.id))
            assert (known.status.state, answer_of(known)) == (TaskState.TASK_STATE_COMPLETED, REPLY)
            assert known.history[0].parts[0].text == "When may I come? I am called Nora."
            repeated = await events_of(client, message_request("When may I come? I am called Nora."))
            assert [event.task.id for event in repeated] == [known.id]
        async with connected(vega_url, token, version=version, streaming=False) as client:
            second = await task_after(
                client, message_request("And tomorrow?", "m2", context_id=known.context_id)
            )
            assert (second.context_id, answer_of(second)) == (known.context_id, "At nine.")
            assert second.id != known.id

    with chat_worker(tenant.id, monkeypatch, streamed(REPLY), reply_text("At nine.")) as model:
        asyncio.run(talk())
    # The second prompt has the earlier turns.
    assert "I am called Nora." in model.requests[1].messages[0].content
    with tenant_transaction(tenant.id):
        assert ChatMessage.objects.filter(speaker=Speaker.USER).count() == 2
        remembered = Memory.objects.filter(agent_id=vega["id"], session__startswith="chat:")
        assert remembered.filter(content__contains="Nora").exists()
        assert remembered.count() == 4


def test_tasks_are_listed_canceled_and_followed(
    vega_url: str, token: str, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with connected(vega_url, token, streaming=False, polling=True) as client:
            waiting = await task_after(client, message_request("When?"))
            assert waiting.status.state == TaskState.TASK_STATE_SUBMITTED
            with pytest.raises(UnsupportedOperationError, match="not answered yet"):
                await task_after(client, message_request("Hello?", "m2", context_id=waiting.context_id))
            canceled = await client.cancel_task(CancelTaskRequest(id=waiting.id))
            assert canceled.status.state == TaskState.TASK_STATE_CANCELED
            with pytest.raises(TaskNotCancelableError):
                await client.cancel_task(CancelTaskRequest(id=waiting.id))
            with pytest.raises(UnsupportedOperationError, match="without taskId"):
                await task_after(client, message_request("More.", "m3", task_id=waiting.id))
            with pytest.raises(TaskNotFoundError):
                await client.get_task(GetTaskRequest(id=vega_url.rpartition("/")[2]))
            following = await task_after(
                client, message_request("And now?", "m4", context_id=waiting.context_id)
            )
        async with connected(vega_url, token) as client:
            with pytest.raises(UnsupportedOperationError, match="canceled"):
                [event async for event in client.subscribe(SubscribeToTaskRequest(id=waiting.id))]
            with chat_worker(tenant.id, monkeypatch, streamed(REPLY)):
                followed = [
                    event async for event in client.subscribe(SubscribeToTaskRequest(id=following.id))
                ]
            assert text_of(followed) == REPLY
            page = await client.list_tasks(ListTasksRequest(page_size=1, include_artifacts=True))
            assert (page.total_size, page.tasks[0].id, answer_of(page.tasks[0])) == (2, following.id, REPLY)
            rest = await client.list_tasks(ListTasksRequest(page_token=page.next_page_token))
            assert [task.id for task in rest.tasks] == [waiting.id]
            for state, task in (
                (TaskState.TASK_STATE_CANCELED, waiting),
                (TaskState.TASK_STATE_COMPLETED, following),
            ):
                page = await client.list_tasks(ListTasksRequest(status=state, context_id=waiting.context_id))
                assert [listed.id for listed in page.tasks] == [task.id]
            page = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_FAILED))
            assert page.total_size == 0

    asyncio.run(work())


def test_failures_and_refusals_are_states_of_the_task(
    vega_url: str, token: str, tenant: Tenant, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_transaction(tenant.id):
        BoundaryFactory(
            agent=Agent.objects.get(id=vega["id"]), name="gate", patterns=["gate code"], examples=[]
        )

    async def ask() -> list[Task]:
        async with connected(vega_url, token, streaming=False) as client:
            failed = await task_after(client, message_request("When?"))
            refused = await task_after(client, message_request("What is it?", "m2"))
            page = await client.list_tasks(ListTasksRequest(status=TaskState.TASK_STATE_REJECTED))
            assert [task.id for task in page.tasks] == [refused.id]
            return [failed, refused]

    script = (ModelTimeout("too slow"), reply_text("The gate code is 4711."))
    with chat_worker(tenant.id, monkeypatch, *script):
        failed, refused = asyncio.run(ask())
    assert failed.status.state == TaskState.TASK_STATE_FAILED
    assert "too slow" in failed.status.message.parts[0].text
    assert refused.status.state == TaskState.TASK_STATE_REJECTED
    assert "4711" not in refused.status.message.parts[0].text
    assert not refused.artifacts


def test_callers_without_rights_are_refused(
    vega_url: str, token: str, tenant: Tenant, vega: dict[str, Any], owner: Caller, outsider: Caller
) -> None:
    lyra = owner.post("/agents", {"name": "Lyra", "template": "Scout"}).json()
    refused = {
        "": "401",
        "arbor_nonsense": "401",
        outsider.token: "404",
        caller_of(tenant, Role.OPERATOR, agent_id=lyra["id"]).token: "404",
        caller_of(tenant, Role.VIEWER).token: "403",
    }

    async def ask(token: str) -> None:
        async with connected(vega_url, token, streaming=False) as client:
            await task_after(client, message_request("When?"))

    for refused_token, status in refused.items():
        with pytest.raises(A2AClientError, match=status):
            asyncio.run(ask(refused_token))
    with tenant_transaction(tenant.id):
        pause_agent(agent_id=UUID(vega["id"]), actor="test")
    with pytest.raises(UnsupportedOperationError, match="Vega is paused"):
        asyncio.run(ask(token))
    with tenant_transaction(tenant.id):
        assert not ChatMessage.objects.exists()
