"""Conversations over HTTP: turns sent, replies followed and resumed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.test import AsyncClient

from apps.api import reply_streams
from apps.api.api import PATH
from apps.contacts.models import ChatMessage, ChatSession
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.values import Speaker
from arbor.errors import ModelUnavailable, NotFound
from arbor.models.ports import ScriptedStream, ScriptLine
from tests.support.api import Caller
from tests.support.chat import chat_worker, reply_text, streamed

REPLY = "The tide is high now. The bridge opens at nine. Come at eight!"

type Worker = Callable[..., Any]


@pytest.fixture
def answering(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """Return a function that starts a worker, which answers the tenant's turns by a script."""

    def start(*lines: ScriptLine) -> Any:
        return chat_worker(tenant.id, monkeypatch, *lines)

    return start


def ask(caller: Caller, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
    """Send a request to an asynchronous operation; return the status and the whole body."""

    async def send() -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        call = getattr(AsyncClient(), method)
        response = await call(
            f"{PATH}{path}", headers={"Authorization": f"Bearer {caller.token}", **named}, **data
        )
        if not response.streaming:
            return response.status_code, response.content.decode()
        parts = [part async for part in response.streaming_content]
        return response.status_code, b"".join(parts).decode()

    return asyncio.run(send())


def events_of(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream: their types, ids and data."""
    events = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            events.append({"id": fields.get("id", ""), "type": fields["event"], **json.loads(fields["data"])})
    return events


def test_a_reply_is_followed_as_events(operator: Caller, vega: dict[str, Any], answering: Worker) -> None:
    path = f"/agents/{vega['id']}/chat"
    with answering(streamed(REPLY)):
        status, text = ask(operator, "post", path, {"text": "When?"}, Accept="text/event-stream")

    events = events_of(text)
    assert status == 200
    assert [event["type"] for event in (events[0], events[-1])] == ["turn", "done"]
    assert "".join(event["text"] for event in events if event["type"] == "sentence") == REPLY
    assert (events[-1]["reply"], events[-1]["model"]) == (REPLY, "scripted/model")
    turn = f"/agents/{vega['id']}/turns/{events[0]['turn_id']}"
    _, text = ask(operator, "get", turn, Accept="text/event-stream", Last_Event_ID="1.1")
    resumed = events_of(text)[1:]
    assert "".join(event["text"] for event in resumed if event["type"] == "sentence") == REPLY.removeprefix(
        "The tide is high now."
    )
    _, text = ask(operator, "get", turn, Accept="text/event-stream", Last_Event_ID=resumed[-1]["id"])
    assert [event["type"] for event in events_of(text)] == ["turn", "done"]


def test_a_turn_is_polled_until_it_is_answered(
    operator: Caller, viewer: Caller, vega: dict[str, Any], answering: Worker, tenant: Tenant
) -> None:
    path = f"/agents/{vega['id']}/chat"
    status, text = ask(operator, "post", path, {"text": "When?", "person": "nora"})
    sent = json.loads(text)
    assert (status, sent["answer"], sent["partial"]) == (202, None, "")
    assert json.loads(ask(operator, "post", path, {"text": "When?", "person": "nora"})[1]) == sent
    conflict, problem = ask(operator, "post", path, {"text": "Now?", "person": "nora"})
    assert (conflict, "has not answered yet" in problem) == (409, True)

    with answering(reply_text(REPLY)):
        turn = f"/agents/{vega['id']}/turns/{sent['turn']['id']}"
        while (shown := json.loads(ask(viewer, "get", turn)[1]))["answer"] is None:
            pass

    assert (shown["answer"]["content"], shown["answer"]["error"]) == (REPLY, "")
    with tenant_transaction(tenant.id):
        assert ChatSession.objects.get().person == "api:nora"


def test_a_failed_turn_ends_with_its_reason(
    operator: Caller, vega: dict[str, Any], answering: Worker
) -> None:
    broken = ScriptedStream(
        pieces=['{"thinking": "", "reply": "One thing is sure. And'], error=ModelUnavailable("cut")
    )
    path = f"/agents/{vega['id']}/chat"
    with answering(broken):
        _, text = ask(operator, "post", path, {"text": "When?"}, Accept="text/event-stream")

    last = events_of(text)[-1]
    assert (last["type"], last["error"]) == ("error", "ModelUnavailable: cut")


def test_a_stream_outlasts_a_moment_without_the_database(
    operator: Caller, vega: dict[str, Any], answering: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, fails = reply_streams._read, iter([True, False, True])

    def read_at_times(turn: Any) -> Any:
        if next(fails, False):
            raise OperationalError("the connection is lost")
        return read(turn)

    monkeypatch.setattr(reply_streams, "_read", read_at_times)
    path = f"/agents/{vega['id']}/chat"
    with answering(reply_text(REPLY)):
        _, text = ask(operator, "post", path, {"text": "When?"}, Accept="text/event-stream")
    assert (events_of(text)[-1]["type"], events_of(text)[-1]["reply"]) == ("done", REPLY)


def test_a_stream_ends_with_its_agent(
    operator: Caller, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_no_turn(_turn: Any) -> Any:
        raise NotFound("there is no turn of a person in this tenant")

    monkeypatch.setattr(reply_streams, "_read", find_no_turn)
    path = f"/agents/{vega['id']}/chat"
    _, text = ask(operator, "post", path, {"text": "When?"}, Accept="text/event-stream")
    last = events_of(text)[-1]
    assert (last["type"], "there is no turn" in last["error"]) == ("error", True)


def test_conversations_of_one_person_are_separate(
    operator: Caller, vega: dict[str, Any], answering: Worker, tenant: Tenant
) -> None:
    path = f"/agents/{vega['id']}/chat"
    with answering(reply_text("At eight."), reply_text("In May."), reply_text("At nine.")) as model:
        for message, conversation in (("When?", "tide"), ("Which month?", "trip"), ("Or later?", "tide")):
            body = {"text": message, "conversation": conversation}
            ask(operator, "post", path, body, Accept="text/event-stream")

    third = model.requests[2].messages[0].content
    assert "At eight." in third.split("## Your conversation")[1]
    assert "In May." not in third.split("## Your conversation")[1]
    with tenant_transaction(tenant.id):
        assert ChatSession.objects.count() == 2


def test_roles_and_tenants_limit_conversations(
    viewer: Caller, operator: Caller, outsider: Caller, vega: dict[str, Any], tenant: Tenant
) -> None:
    path = f"/agents/{vega['id']}/chat"
    turn_id = json.loads(ask(operator, "post", path, {"text": "When?"})[1])["turn"]["id"]
    turn = f"/agents/{vega['id']}/turns/{turn_id}"

    assert ask(viewer, "post", path, {"text": "When?"})[0] == 403
    assert ask(viewer, "get", turn)[0] == 200
    assert ask(outsider, "post", path, {"text": "When?"})[0] == 404
    assert ask(outsider, "get", turn)[0] == 404
    assert ask(operator, "post", path, {"text": "x" * 8_001})[0] == 422
    keyed = {"Accept": "text/event-stream", "Idempotency_Key": "k1"}
    assert ask(operator, "post", path, {"text": "When?"}, **keyed)[0] == 422
    with tenant_transaction(tenant.id):
        assert ChatMessage.objects.filter(speaker=Speaker.USER).count() == 1
