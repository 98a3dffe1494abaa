"""The Agent2Agent protocol without a client package: refused calls, and the codes of their errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError

from apps.agents.services.publication import publish_agent
from apps.api.a2a import methods
from apps.api.a2a.methods import RpcCaller
from apps.contacts.models import ChatMessage
from apps.contacts.services.client_tasks import TaskClient
from apps.tenants.models import Role, Tenant, TenantStatus
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import set_status
from arbor.contacts.client_tasks import ClientTask
from arbor.contacts.reply_progress import ReplyEvent, ReplyEventKind, ReplyProgress, StoredAnswer
from arbor.errors import NotFound
from tests.support.api import Caller, caller_of

CARD = ".well-known/agent-card.json"
MESSAGE = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "When may I come?"}]}


@pytest.fixture
def address(tenant: Tenant, vega: dict[str, Any]) -> str:
    """Publish Vega, and return the path of its endpoint."""
    with tenant_transaction(tenant.id):
        publish_agent(agent_id=UUID(vega["id"]), actor="test")
    return f"/a2a/{tenant.id}/{vega['id']}"


def post(caller: Caller, path: str, body: Any, **headers: str) -> Any:
    content = body if isinstance(body, str) else json.dumps(body)
    authorization = {"Authorization": f"Bearer {caller.token}"}
    return caller.client.post(
        path, content, content_type="application/json", headers={**authorization, **headers}
    )


def call(caller: Caller, path: str, method: str, params: Any = None, **headers: str) -> Any:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params if params is not None else {}}
    response = post(caller, path, body, **headers)
    assert response.status_code == 200, response.content
    answer = response.json()
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", 7)
    return answer


def send_message(caller: Caller, path: str, **fields: Any) -> Any:
    params = {"message": {**MESSAGE, **fields}, "configuration": {"returnImmediately": True}}
    return call(caller, path, "SendMessage", params)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", -32700),
        ("[NaN]", -32700),
        ("[]", -32600),
        ('"text"', -32600),
        ({"id": 1, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": {}, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "GetTask"}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "Dance"}, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask"}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x\0y"}}, -32001),
        ({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": [1]}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": 1}}, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/set"}, -32003),
        ({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}, -32004),
    ],
)
def test_a_bad_call_gets_the_code_of_its_error(owner: Caller, address: str, body: Any, code: int) -> None:
    response = post(owner, address, body)
    assert response.status_code == 200, response.content
    assert response.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"messageId": ""}, -32602),
        ({"messageId": "a\nb"}, -32602),
        ({"contextId": "x" * 97}, -32602),
        ({"contextId": "a\0b"}, -32602),
        ({"role": "ROLE_AGENT"}, -32602),
        ({"parts": []}, -32602),
        ({"parts": [{"text": " "}]}, -32602),
        ({"parts": [{"text": "a\0b"}]}, -32602),
        ({"parts": [{"text": "x" * 8_001}]}, -32602),
        ({"parts": [{"url": "https://example.org/a.png"}]}, -32005),
        ({"parts": [{"text": "See.", "url": "https://example.org/a.png"}]}, -32005),
        ({"taskId": "nonsense"}, -32001),
    ],
)
def test_a_bad_message_gets_the_code_of_its_error(
    owner: Caller, address: str, tenant: Tenant, changes: dict[str, Any], code: int
) -> None:
    assert send_message(owner, address, **changes)["error"]["code"] == code
    with tenant_transaction(tenant.id):
        assert not ChatMessage.objects.exists()


def test_unsupported_options_are_refused(owner: Caller, address: str) -> None:
    for configuration, code in (
        ({"acceptedOutputModes": ["image/png"]}, -32005),
        ({"taskPushNotificationConfig": {"url": "https://example.org"}}, -32003),
        ({"historyLength": -1}, -32602),
    ):
        params = {"message": MESSAGE, "configuration": configuration}
        assert call(owner, address, "SendMessage", params)["error"]["code"] == code
    refused = call(owner, address, "SendMessage", {"message": MESSAGE}, **{"A2A-Version": "2.0"})
    assert refused["error"]["code"] == -32009
    invalid: list[dict[str, Any]] = [
        {"pageSize": 0},
        {"pageSize": 101},
        {"pageToken": "nonsense"},
        {"status": "TASK_STATE_NONE"},
        {"statusTimestampAfter": "yesterday"},
        {"statusTimestampAfter": "2026-11-23T09:00:00"},
    ]
    for query in invalid:
        assert call(owner, address, "ListTasks", query)["error"]["code"] == -32602, query


def test_a_repeated_message_finds_its_task(owner: Caller, address: str, tenant: Tenant) -> None:
    first = send_message(owner, address)["result"]["task"]
    again = send_message(owner, address, parts=[{"text": "Something else."}])["result"]["task"]
    assert again == first
    assert first["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert first["history"][0]["messageId"] == "m1"
    legacy = call(owner, address, "tasks/get", {"id": first["id"], "historyLength": 0})["result"]
    assert (legacy["kind"], legacy["status"]["state"], legacy["history"]) == ("task", "submitted", [])
    with tenant_transaction(tenant.id):
        assert ChatMessage.objects.count() == 1


def test_a_task_belongs_to_its_client(owner: Caller, address: str, tenant: Tenant) -> None:
    task = send_message(owner, address)["result"]["task"]
    other = caller_of(tenant, Role.OPERATOR)
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        assert call(other, address, method, {"id": task["id"]})["error"]["code"] == -32001
    listed = call(other, address, "ListTasks")["result"]
    assert (listed["tasks"], listed["totalSize"], listed["nextPageToken"]) == ([], 0, "")
    # The same message id from another client means another message.
    assert send_message(other, address)["result"]["task"]["id"] != task["id"]


def test_only_published_agents_are_found(
    owner: Caller, outsider: Caller, address: str, tenant: Tenant, other_tenant: Tenant
) -> None:
    lyra = owner.post("/agents", {"name": "Lyra", "template": "Scout"}).json()["id"]
    vega = address.rpartition("/")[2]
    hidden = {f"/a2a/{tenant.id}/{lyra}": lyra, f"/a2a/{other_tenant.id}/{vega}": vega}
    for path, agent_id in hidden.items():
        card = owner.client.get(f"{path}/{CARD}")
        assert (card.status_code, card.json()["detail"]) == (
            404,
            f"there is no agent {agent_id} in this tenant",
        )
        for caller in (owner, outsider):
            assert post(caller, path, {}).json()["detail"] == card.json()["detail"]
    assert owner.client.get(address).status_code == 405
    assert owner.client.get(f"{address}/{CARD}").status_code == 200
    set_status(slug=tenant.slug, status=TenantStatus.SUSPENDED)
    assert owner.client.get(f"{address}/{CARD}").status_code == 404


def test_a_token_for_tasks_does_nothing_else(
    owner: Caller, address: str, tenant: Tenant, vega: dict[str, Any]
) -> None:
    made = owner.post("/tokens", {"name": "partner", "agent_id": vega["id"], "tasks_only": True}).json()
    assert made["about"]["tasks_only"]
    partner = Caller(token=made["token"])
    task = send_message(partner, address)["result"]["task"]
    assert call(partner, address, "GetTask", {"id": task["id"]})["result"]["id"] == task["id"]
    for path in ("/agents", "/tenant", f"/agents/{vega['id']}/memories", f"/agents/{vega['id']}/turns"):
        assert partner.get(path).status_code == 403
    assert partner.post(f"/agents/{vega['id']}/pause").status_code == 403
    headers = {"Authorization": f"Bearer {partner.token}"}
    assert partner.client.get("/v1/models", headers=headers).status_code == 403


def test_the_card_shows_no_secrets(owner: Caller, address: str, vega: dict[str, Any]) -> None:
    owner.post(f"/agents/{vega['id']}/publish", {"description": "Knows the tides."})
    response = owner.client.get(f"{address}/{CARD}")
    assert response["Cache-Control"] == "public, max-age=60"
    unchanged = owner.client.get(f"{address}/{CARD}", headers={"If-None-Match": response["ETag"]})
    assert (unchanged.status_code, unchanged["Cache-Control"]) == (304, "public, max-age=60")
    assert response.json()["description"] == "Knows the tides."
    for private in ("You go in first", "Breadth first", "acme", vega["public_id"]):
        assert private not in response.content.decode()


def test_a_card_at_an_unknown_host_is_refused(owner: Caller, address: str) -> None:
    for host in ("evil.example", "a b", "[::1"):
        response = owner.client.get(f"{address}/{CARD}", headers={"Host": host})
        assert (response.status_code, "ALLOWED_HOSTS" in response.json()["detail"]) == (400, True)


ANSWER = StoredAnswer(id="a1", content="At nine.")


@pytest.mark.parametrize(
    ("event", "error", "state", "text"),
    [
        (
            ReplyEvent(kind=ReplyEventKind.ERROR, text="there is no turn"),
            NotFound("you have no task"),
            "TASK_STATE_FAILED",
            "there is no turn",
        ),
        (
            ReplyEvent(kind=ReplyEventKind.DONE, answer=ANSWER),
            OperationalError("the connection is lost"),
            "TASK_STATE_COMPLETED",
            None,
        ),
    ],
)
def test_a_stream_whose_task_cannot_be_read_ends_with_a_status(
    monkeypatch: pytest.MonkeyPatch, event: ReplyEvent, error: Exception, state: str, text: str | None
) -> None:
    async def events_of_reply(*_: Any) -> AsyncIterator[ReplyEvent]:
        yield event

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(methods, "reply_events", events_of_reply)
    monkeypatch.setattr(methods, "_read", fail)
    client = TaskClient(agent_id=UUID(int=1), person="api:nora")
    task = ClientTask(
        id=str(UUID(int=2)),
        context="c1",
        message_id="m1",
        text="When?",
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
        progress=ReplyProgress(),
    )

    async def last_status() -> Any:
        events = methods._events(RpcCaller(tenant_id=UUID(int=3), client=client), task)
        return [event async for event in events][-1]

    status = asyncio.run(last_status())["statusUpdate"]["status"]
    assert status["state"] == state
    assert (status["message"]["parts"] if "message" in status else None) == (text and [{"text": text}])
