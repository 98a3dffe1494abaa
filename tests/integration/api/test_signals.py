"""Signals over HTTP: pages, streams of two subscribers, resumption, and the end of a token."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from django.db import OperationalError
from structlog.testing import capture_logs

from apps.access.services import TokenAccess, authenticate, revoke_token, token_by_name
from apps.api import reply_streams, signal_hub
from apps.api.reply_streams import FollowedTurn, last_event
from apps.api.routers import signals as signal_routes
from apps.api.routers.signals import event_of
from apps.api.signal_hub import SignalHub, hub_of, live_signals, read_page
from apps.signals.services.emission import emit
from apps.signals.services.reading import SignalFilter, SignalPage, read_signals
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.contacts.reply_progress import ReplyEventKind, ReplyProgress, StoredAnswer
from arbor.errors import RateLimited
from arbor.signals import Cursor, SignalName, signal
from tests.integration.api.test_server import server
from tests.support.api import Caller, caller_of

__all__ = ["server"]

LESSON = SignalName.LESSON_EXTRACTED


def emit_numbers(tenant: Tenant, *numbers: int, agent_id: UUID | None = None) -> None:
    """Commit one signal for each number."""
    for number in numbers:
        with tenant_transaction(tenant.id):
            emit(signal(LESSON, agent_id or uuid4(), action=str(number), outcome="success"))


def numbers_in(items: list[dict[str, Any]]) -> list[int]:
    return [int(item["data"]["action"]) for item in items if item["name"] == LESSON]


def test_signals_are_read_by_a_cursor(tenant: Tenant, viewer: Caller, outsider: Caller) -> None:
    emit_numbers(tenant, 1, 2, 3)
    first = viewer.get("/signals", limit=2).json()
    assert (numbers_in(first["items"]), first["more"]) == ([1, 2], True)
    second = viewer.get("/signals", after=first["cursor"]).json()
    assert (numbers_in(second["items"]), second["more"]) == ([3], False)
    assert viewer.get("/signals", after=second["cursor"]).json()["items"] == []
    assert outsider.get("/signals").json()["items"] == []


def test_signals_are_filtered(vega: dict[str, Any], tenant: Tenant, viewer: Caller) -> None:
    emit_numbers(tenant, 1)
    names = {item["name"] for item in viewer.get("/signals", name="agent").json()["items"]}
    assert names == {"agent.created", "agent.started"}
    of_agent = viewer.get("/signals", agent_id=vega["id"], name="memory.lesson_extracted").json()
    assert of_agent["items"] == []
    assert viewer.get("/signals", name="nothing").status_code == 422
    assert viewer.get("/signals", after="yesterday").status_code == 422
    assert viewer.get("/signals", limit=0).status_code == 422


def test_a_token_of_one_agent_reads_its_signals_only(vega: dict[str, Any], tenant: Tenant) -> None:
    emit_numbers(tenant, 1)
    own = caller_of(tenant, Role.VIEWER, agent_id=UUID(vega["id"]))
    for query in ({}, {"agent_id": vega["id"]}):
        found = own.get("/signals", **query).json()["items"]
        assert {item["agent_id"] for item in found} == {vega["id"]}
    assert own.get("/signals", agent_id=str(uuid4())).status_code == 403


def test_the_catalogue_is_listed(viewer: Caller) -> None:
    names = {kind["name"]: kind for kind in viewer.get("/signals/names").json()}
    assert names["memory.goal_created"]["data"]["goal"]


def test_an_event_has_the_cursor_as_its_id(tenant: Tenant) -> None:
    emit_numbers(tenant, 1)
    with tenant_transaction(tenant.id):
        (record,) = read_signals(after=Cursor()).signals
    lines = event_of(record).splitlines()
    assert lines[:2] == [f"id: {record.cursor}", "event: memory.lesson_extracted"]
    assert json.loads(lines[2].removeprefix("data: "))["id"] == str(record.cursor)


class Subscriber:
    """A client of the stream in a thread of its own, like a browser's EventSource."""

    def __init__(self, server: str, caller: Caller, *, last_id: str = "", **query: Any) -> None:
        self.events: list[tuple[str, str]] = []
        self.open, self.over, self._leaving = threading.Event(), threading.Event(), threading.Event()
        self._arrived = threading.Condition()
        headers = {"Authorization": f"Bearer {caller.token}"} | (
            {"Last-Event-ID": last_id} if last_id else {}
        )
        self._thread = threading.Thread(target=self._run, args=(server, headers, query))
        self._thread.start()
        assert self.open.wait(timeout=120)

    def _run(self, server: str, headers: dict[str, str], query: dict[str, Any]) -> None:
        try:
            with httpx.stream(
                "GET", f"{server}/api/v1/signals/stream", headers=headers, params=query, timeout=120
            ) as answer:
                assert answer.status_code == 200, answer.read()
                event_id = ""
                for line in answer.iter_lines():
                    self.open.set()
                    if line.startswith("id: "):
                        event_id = line.removeprefix("id: ")
                    elif line.startswith("data: "):
                        with self._arrived:
                            self.events.append((event_id, line.removeprefix("data: ")))
                            self._arrived.notify_all()
                    if self._leaving.is_set():
                        return
        finally:
            self.over.set()

    @property
    def numbers(self) -> list[int]:
        return numbers_in([json.loads(data) for _, data in self.events if "name" in data])

    def wait_for(self, count: int) -> None:
        """Wait until `count` signals have arrived."""
        with self._arrived:
            has_arrived = self._arrived.wait_for(lambda: len(self.numbers) >= count, timeout=60)
        assert has_arrived, f"{self.numbers} arrived, not {count}"

    def leave(self, emit_next: Callable[[], None]) -> None:
        """Close the connection at the next line, which `emit_next` causes."""
        self._leaving.set()
        emit_next()
        self._thread.join(timeout=120)


def test_two_subscribers_get_every_signal_once(server: str, tenant: Tenant, viewer: Caller) -> None:
    staying, leaving = Subscriber(server, viewer), Subscriber(server, viewer)
    emit_numbers(tenant, *range(10))
    staying.wait_for(10)
    leaving.wait_for(10)
    leaving.leave(lambda: emit_numbers(tenant, 10))
    # While one subscriber is away.
    emit_numbers(tenant, *range(11, 15))
    last_id = leaving.events[-1][0]
    back = Subscriber(server, viewer, last_id=last_id)
    emit_numbers(tenant, *range(15, 20))
    staying.wait_for(20)
    assert staying.numbers == list(range(20))
    back.wait_for(20 - len(leaving.numbers))
    assert leaving.numbers + back.numbers == list(range(20))
    with tenant_transaction(tenant.id):
        revoke_token(token_id=token_by_name("viewer {}").id, actor="test")
    for subscriber in (staying, back):
        assert subscriber.over.wait(timeout=120), "a revoked token ends its streams"
        assert "revoked" in subscriber.events[-1][1]
    assert (
        httpx.get(
            f"{server}/api/v1/signals/stream", headers={"Authorization": f"Bearer {viewer.token}"}, timeout=60
        ).status_code
        == 401
    )


def test_a_stream_is_filtered_by_agent_and_name(server: str, tenant: Tenant, viewer: Caller) -> None:
    mine = uuid4()
    stream = Subscriber(server, viewer, agent_id=str(mine), name="memory.lesson_*")
    emit_numbers(tenant, 1)
    emit_numbers(tenant, 2, agent_id=mine)
    stream.wait_for(1)
    assert stream.numbers == [2]
    stream.leave(lambda: emit_numbers(tenant, 3, agent_id=mine))


def test_a_token_has_a_limited_number_of_streams(tenant: Tenant, viewer: Caller, settings: Any) -> None:
    settings.ARBOR_API_STREAMS = 1
    access = authenticate(viewer.token)

    async def open_two() -> None:
        hub = SignalHub(tenant.id)
        with hub.listen(access), pytest.raises(RateLimited, match="1 open stream"):
            hub.require_room(access)
        hub.require_room(access)

    asyncio.run(open_two())


def test_a_stream_that_ends_at_once_leaves_its_hub(tenant: Tenant, viewer: Caller, settings: Any) -> None:
    settings.ARBOR_API_STREAMS = 1
    access = authenticate(viewer.token)

    async def open_and_close() -> None:
        events = _events_of(access)
        assert await anext(events) == "retry: 2000\n\n"
        await events.aclose()
        hub_of(tenant.id).require_room(access)

    asyncio.run(open_and_close())


def test_a_stream_catches_up_after_the_database_was_away(
    tenant: Tenant, viewer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    access, fails = authenticate(viewer.token), iter([True])
    emit_numbers(tenant, 7)

    def read_at_times(*given: Any) -> Any:
        # The reader of the hub has no filter.
        if len(given) == 3 and next(fails, False):
            raise OperationalError("the connection is lost")
        return read_page(*given)

    monkeypatch.setattr(signal_hub, "read_page", read_at_times)

    async def read_first() -> str:
        events = _events_of(access)
        assert await anext(events) == "retry: 2000\n\n"
        first: str = await anext(events)
        await events.aclose()
        return first

    assert "memory.lesson_extracted" in asyncio.run(read_first())


def test_streams_that_begin_at_once_keep_to_the_limit(tenant: Tenant, viewer: Caller, settings: Any) -> None:
    settings.ARBOR_API_STREAMS = 1
    access = authenticate(viewer.token)

    async def open_two() -> None:
        first, second = (_events_of(access) for _ in range(2))
        assert await anext(first) == "retry: 2000\n\n"
        assert [event async for event in second] == [
            f'event: end\ndata: {{"reason": "the token {access.name} has 1 open stream, the most it may have; close one first"}}\n\n'
        ]
        await first.aclose()

    asyncio.run(open_two())


def _events_of(access: TokenAccess) -> Any:
    return signal_routes._events(access, Cursor(), SignalFilter())


def test_a_stream_sends_keep_alives_while_the_database_is_away(
    tenant: Tenant, viewer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    access, fails = authenticate(viewer.token), {2: iter([True] * 3), 3: iter([True] * 4)}
    emit_numbers(tenant, 7)

    def read_at_times(*given: Any) -> Any:
        # The reader of the hub has no filter.
        if next(fails[len(given)], False):
            raise OperationalError("the connection is lost")
        return read_page(*given)

    monkeypatch.setattr(signal_hub, "read_page", read_at_times)
    monkeypatch.setattr(signal_hub, "POLL_S", 0.01)
    monkeypatch.setattr(signal_hub, "SILENCE_S", 0.0)

    async def read_until_signal() -> list[str]:
        events, found = _events_of(access), list[str]()
        async for event in events:
            found.append(event)
            if event.startswith("id:"):
                break
        await events.aclose()
        return found

    with capture_logs() as logs:
        found = asyncio.run(read_until_signal())
    assert found.count(": alive\n\n") >= 3
    failed = [entry["log_level"] for entry in logs if entry["event"] == "signal_read_failed"]
    assert sorted(failed) == ["error", "warning"]


def test_a_stream_of_rare_signals_sends_keep_alives(
    tenant: Tenant, viewer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A proxy or a client would take a connection without them for a dead one.
    access, unwanted = authenticate(viewer.token), SignalPage(signals=(), cursor=Cursor(), more=False)
    monkeypatch.setattr(signal_hub, "read_page", lambda *_: unwanted)
    monkeypatch.setattr(signal_hub, "SILENCE_S", 0.2)

    async def read_first() -> Any:
        listener = signal_hub._Listener(access)

        async def receive_others() -> None:
            while True:
                listener.receive(unwanted)
                await asyncio.sleep(0.02)

        others = asyncio.create_task(receive_others())
        async with asyncio.timeout(10):
            first = await anext(live_signals(listener, after=Cursor(), wanted=SignalFilter()))
        others.cancel()
        return first

    assert asyncio.run(read_first()) is None


def test_a_reply_logs_an_outage_of_the_database_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = iter([True] * 3)

    def read_at_times(*_: Any) -> ReplyProgress:
        if next(fails, False):
            raise OperationalError("the connection is lost")
        return ReplyProgress(answer=StoredAnswer(id="a1", content="At nine."))

    monkeypatch.setattr(reply_streams, "_read", read_at_times)
    monkeypatch.setattr(reply_streams, "READ_EVERY_S", 0.01)
    with capture_logs() as logs:
        last = asyncio.run(last_event(FollowedTurn(tenant_id=uuid4(), turn_id=uuid4())))
    assert last is not None
    assert last.kind is ReplyEventKind.DONE
    assert [entry["event"] for entry in logs] == ["reply_read_failed"]
