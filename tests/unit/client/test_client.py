"""The Python client against scripted answers: retries, errors, pages, streams; blocking and awaiting alike."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx
import pytest

import arbor_client as client_package
from arbor_client import Arbor, AsyncArbor
from arbor_client.calls import Call
from arbor_client.json_values import decode
from arbor_client.streams import EventReader, StreamCall

AGENT = {
    "id": "01890000-0000-7000-8000-000000000001",
    "public_id": "agent_1",
    "name": "Vega",
    "status": "active",
    "template": "Scout",
    "template_version": "1",
    "trust_tier": "probationary",
    "model": "",
    "energy": 10,
    "heartbeats": 3,
    "published": False,
    "public_description": "",
    "card_path": "/a2a/agents/1/card",
    "interval_s": 60,
    "due_at": None,
    "last_heartbeat_at": None,
    "created_at": "2026-11-01T10:00:00Z",
    "from_a_later_version": True,
}


NODE = {"kind": "memory", "id": "01890000-0000-7000-8000-000000000002"}


class ScriptedServer:
    """A server that answers from a list, and records requests."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers: Iterator[httpx.Response | Exception] = iter(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


type Run = Callable[[ScriptedServer, Callable[[Any], Any]], Any]


def blocking(server: ScriptedServer, use: Callable[[Any], Any]) -> Any:
    """Use a blocking client; the items of an iterator are collected."""
    with Arbor("http://arbor", "arbor_x", transport=httpx.MockTransport(server)) as client:
        result = use(client)
        return list(result) if inspect.isgenerator(result) else result


def awaiting(server: ScriptedServer, use: Callable[[Any], Any]) -> Any:
    """Use an asynchronous client in the same way."""

    async def run() -> Any:
        async with AsyncArbor("http://arbor", "arbor_x", transport=httpx.MockTransport(server)) as client:
            result = use(client)
            return [item async for item in result] if inspect.isasyncgen(result) else await result

    return asyncio.run(run())


@pytest.fixture(params=[blocking, awaiting])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return the use of one of the two clients, which do not wait between attempts."""

    async def return_at_once(_seconds: float) -> None: ...

    monkeypatch.setattr(asyncio, "sleep", return_at_once)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    chosen: Run = request.param
    return chosen


def ok(value: Any, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=value)


def problem(status: int, kind: str, **more: Any) -> httpx.Response:
    body = {"type": f"urn:arbor:problem:{kind}", "detail": f"it is {kind}", "request_id": "r1", **more}
    return httpx.Response(status, json=body, headers={"content-type": "application/problem+json"})


def test_a_value_is_read(run: Run) -> None:
    server = ScriptedServer(ok(AGENT))
    agent = run(server, lambda client: client.agents.get(AGENT["id"]))
    assert (agent.name, str(agent.id), agent.energy, agent.created_at.year) == (
        "Vega",
        AGENT["id"],
        10.0,
        2026,
    )
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer arbor_x"
    assert request.url.path == f"/api/v1/agents/{AGENT['id']}"


def test_a_creation_is_repeated_under_one_key(run: Run) -> None:
    server = ScriptedServer(
        httpx.ReadTimeout("late"), problem(409, "request-underway"), ok(AGENT, status=201)
    )
    assert run(server, lambda client: client.agents.create("Vega", template="Scout")).name == "Vega"
    keys = {request.headers["idempotency-key"] for request in server.requests}
    assert (len(server.requests), len(keys)) == (3, 1)
    assert json.loads(server.requests[0].content) == {"name": "Vega", "template": "Scout", "start": False}


def test_a_call_without_key_is_not_repeated(run: Run) -> None:
    server = ScriptedServer(httpx.ReadTimeout("late"))
    call = Call(method="POST", path="/x", parse=lambda value: value)
    with pytest.raises(client_package.Unreachable, match="did not answer POST /x"):
        run(server, lambda client: client.send(call))


def test_a_change_is_repeated_only_if_it_was_not_executed(run: Run) -> None:
    server = ScriptedServer(problem(429, "rate-limited"), httpx.ReadTimeout("late"))
    with pytest.raises(client_package.Unreachable, match="did not answer PATCH"):
        run(server, lambda client: client.goals.change("a", "g", note="Half of it is done."))
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (401, "token-refused", client_package.TokenInvalid),
        (403, "permission-denied", client_package.Forbidden),
        (404, "not-found", client_package.Missing),
        (409, "already-exists", client_package.Conflict),
        (500, "failed", client_package.ServerFailed),
    ],
)
def test_a_problem_is_an_error(run: Run, status: int, kind: str, error: type[client_package.Refused]) -> None:
    with pytest.raises(error, match=f"it is {kind}") as caught:
        run(ScriptedServer(problem(status, kind)), lambda client: client.tenant.get())
    assert (caught.value.status, caught.value.kind, caught.value.request_id) == (status, kind, "r1")


def test_wrong_fields_are_named(run: Run) -> None:
    refusal = problem(422, "invalid", errors=[{"field": "body.name", "message": "too short"}])
    with pytest.raises(client_package.Unprocessable) as caught:
        run(ScriptedServer(refusal), lambda client: client.agents.create("", template="Scout"))
    assert caught.value.fields == {"body.name": "too short"}


@pytest.mark.parametrize("errors", [["late"], "late", {"a": 1}, None])
def test_an_error_in_the_form_of_a_gateway_is_an_error(run: Run, errors: Any) -> None:
    with pytest.raises(client_package.ServerFailed) as caught:
        run(ScriptedServer(httpx.Response(500, json={"errors": errors})), lambda client: client.tenant.get())
    assert (caught.value.status, caught.value.fields) == (500, {})


@pytest.mark.parametrize("answer", [[], {}, {"items": None}, "none"])
def test_an_answer_without_a_list_is_unreadable(run: Run, answer: Any) -> None:
    for use in (lambda client: client.agents.list(), lambda client: client.documents.categories()):
        with pytest.raises(client_package.UnreadableAnswer, match="no list under items"):
            run(ScriptedServer(ok(answer)), use)


def test_a_call_is_tried_three_times_at_most(run: Run) -> None:
    server = ScriptedServer(*[problem(429, "rate-limited")] * 3)
    with pytest.raises(client_package.TooManyRequests):
        run(server, lambda client: client.tenant.get())
    assert len(server.requests) == 3


def test_an_answer_without_the_expected_fields_is_unreadable(run: Run) -> None:
    for answer in (httpx.Response(200, text="<html>"), ok({"id": 1})):
        with pytest.raises(client_package.UnreadableAnswer):
            run(ScriptedServer(answer), lambda client: client.tenant.get())


@pytest.mark.parametrize(
    ("status", "retry_after", "content"),
    [
        (200, "", b"[" * 100_000),
        (500, "", b"[" * 100_000),
        (429, "²", b"{}"),
        (200, "", b'{"items": [], "next_cursor": ""}'),
    ],
)
def test_rubbish_is_an_error_of_the_client(run: Run, status: int, retry_after: str, content: bytes) -> None:
    headers = {b"retry-after": retry_after.encode()}
    answers = [httpx.Response(status, headers=headers, content=content) for _ in range(3)]
    with pytest.raises(client_package.ArborClientError):
        run(ScriptedServer(*answers), lambda client: client.agents.list())


@pytest.mark.parametrize("location", ["http://xn--a/", "//xn--ls8h/", "data:x"])
def test_a_redirect_to_no_address_is_an_error_of_the_client(run: Run, location: str) -> None:
    answers = [httpx.Response(302, headers={"location": location}) for _ in range(3)]
    with pytest.raises(client_package.Unreachable, match="a redirect to no address"):
        run(ScriptedServer(*answers), lambda client: client.agents.list())


def test_a_broken_compression_is_an_error_of_the_client() -> None:
    headers = {"content-encoding": "gzip"}
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, headers=headers, stream=httpx.ByteStream(b"no gzip"))
    )
    with (
        Arbor("http://arbor", "arbor_x", retries=0, transport=transport) as arbor,
        pytest.raises(client_package.Unreachable),
    ):
        arbor.agents.get(str(AGENT["id"]))


def test_a_number_that_cannot_be_read_is_unreadable() -> None:
    for kind, value in ((Decimal, "x"), (float, 10**400)):
        with pytest.raises(client_package.UnreadableAnswer):
            decode(kind, value)


def test_an_answer_is_waited_for_no_longer_than_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(step=40)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(seconds)))
    turn = {
        "id": AGENT["id"],
        "conversation": AGENT["id"],
        "person": "Ada",
        "speaker": "user",
        "content": "Hello.",
        "model": "",
        "error": "",
        "at": AGENT["created_at"],
    }
    server = ScriptedServer(*[ok({"turn": turn, "answer": None, "partial": ""})] * 3)
    answered = run(server, lambda client: client.conversations.say(AGENT["id"], "Hello.", wait_s=90))
    assert (answered.answer, [request.method for request in server.requests]) == (
        None,
        ["POST", "GET", "GET"],
    )


def test_a_value_is_asked_for_until_it_is_complete(run: Run) -> None:
    server = ScriptedServer(ok({"done": False}), ok({"done": False}), ok({"done": True}))
    asked: Call[Any] = Call(method="GET", path="/x", parse=lambda value: value)

    def follow(value: Any) -> Call[Any] | None:
        return None if value["done"] else replace(asked, follow=follow)

    assert run(server, lambda client: client.send(follow({"done": False}))) == {"done": True}
    assert len(server.requests) == 3


def test_a_list_goes_through_its_pages(run: Run) -> None:
    server = ScriptedServer(
        ok({"items": [AGENT], "next_cursor": "c1"}),
        ok({"items": [{**AGENT, "name": "Deneb"}], "next_cursor": None}),
    )
    agents = run(server, lambda client: client.agents.list(status="active"))
    assert [agent.name for agent in agents] == ["Vega", "Deneb"]
    assert [dict(request.url.params) for request in server.requests] == [
        {"status": "active"},
        {"status": "active", "cursor": "c1"},
    ]


def test_a_change_sends_only_what_is_named(run: Run) -> None:
    server = ScriptedServer(ok({"daily_heartbeats": None, "daily_tokens": 5, "daily_usd": "2.50"}))
    limits = run(
        server, lambda client: client.tenant.change_limits(daily_heartbeats=None, daily_usd=Decimal("2.50"))
    )
    assert json.loads(server.requests[0].content) == {"daily_heartbeats": None, "daily_usd": "2.50"}
    assert (limits.daily_heartbeats, limits.daily_tokens, limits.daily_usd) == (None, 5, Decimal("2.50"))


def test_values_are_sent_as_json(run: Run) -> None:
    edge = {"source": NODE, "relation": "causes", "target": NODE, "weight": 1.0}
    server = ScriptedServer(ok(edge, status=201))
    node = client_package.Node(kind="memory", id=UUID(NODE["id"]))
    made = run(server, lambda client: client.graph.relate("a", node, "causes", node))
    assert json.loads(server.requests[0].content) == {**edge, "note": ""}
    assert made.source == node


def test_a_list_that_comes_whole_is_read(run: Run) -> None:
    match = {"name": "No lies", "response": "refuse", "why": "a word"}
    server = ScriptedServer(ok({"items": [match]}))
    (read,) = run(server, lambda client: client.boundaries.check("a", "a lie"))
    assert (read.name, read.why) == ("No lies", "a word")


def test_a_name_is_one_segment_of_a_path(run: Run) -> None:
    server = ScriptedServer(httpx.Response(204))
    assert run(server, lambda client: client.members.remove("a/b c")) is None
    assert server.requests[0].url.raw_path == b"/api/v1/members/a%2Fb%20c"


def test_an_id_is_one_segment_of_a_path(run: Run) -> None:
    server = ScriptedServer(ok(AGENT))
    run(server, lambda client: client.agents.pause("a/../b?c"))
    assert server.requests[0].url.raw_path == b"/api/v1/agents/a%2F..%2Fb%3Fc/pause"


@pytest.mark.parametrize("lost", [httpx.ReadTimeout("late"), 502, 503])
def test_a_repeated_deletion_that_finds_nothing_is_done(run: Run, lost: int | Exception) -> None:
    first = lost if isinstance(lost, Exception) else problem(lost, "gateway")
    server = ScriptedServer(first, problem(404, "not-found"))
    assert run(server, lambda client: client.webhooks.delete("a")) is None
    assert len(server.requests) == 2


@pytest.mark.parametrize("refused", [httpx.ConnectError("away"), 429])
def test_a_deletion_that_was_not_executed_finds_nothing(run: Run, refused: int | Exception) -> None:
    first = refused if isinstance(refused, Exception) else problem(refused, "too-many-requests")
    server = ScriptedServer(first, problem(404, "not-found"))
    with pytest.raises(client_package.Missing):
        run(server, lambda client: client.webhooks.delete("a"))


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_of_dots_reaches_no_other_address(run: Run, name: str) -> None:
    # The HTTP library would resolve it: `/agents/a/boundaries/..` is the agent itself.
    server = ScriptedServer(httpx.Response(204))
    with pytest.raises(ValueError, match="part of an address"):
        run(server, lambda client: client.boundaries.remove("a", name))
    assert server.requests == []


def test_a_repeated_request_keeps_the_items_of_a_generator(run: Run) -> None:
    page = {"items": [], "cursor": "1.2", "more": False}
    server = ScriptedServer(problem(503, "database-away"), ok(page))
    run(server, lambda client: client.signals.read(names=(name for name in ["memory.goal_*"])))
    assert [request.url.params.get_list("name") for request in server.requests] == [["memory.goal_*"]] * 2


def test_a_stream_yields_events(run: Run) -> None:
    text = ': hello\n\nid: 7\nevent: token\ndata: {"text":\ndata: "Hi"}\n\ndata: plain\n\n'
    server = ScriptedServer(httpx.Response(200, text=text))
    events = run(server, lambda client: client.stream(StreamCall(path="/s", after="6")))
    assert [(event.id, event.name, event.data) for event in events] == [
        ("7", "token", {"text": "Hi"}),
        ("7", "message", "plain"),
    ]
    assert server.requests[0].headers["last-event-id"] == "6"


def test_a_stream_is_split_at_its_own_line_breaks_only(run: Run) -> None:
    text = 'id: 7\r\ndata: {"text": "a\u2028b\u0085c"}\r\n\r\ndata: plain\r\rdata: cut off'
    server = ScriptedServer(httpx.Response(200, text=text))
    events = run(server, lambda client: client.stream(StreamCall(path="/s")))
    assert [(event.id, event.data) for event in events] == [
        ("7", {"text": "a\u2028b\u0085c"}),
        ("7", "plain"),
    ]
    reader = EventReader()
    # The parts of a response end anywhere, also between CR and LF.
    assert [event.data for part in text for event in reader.feed(part)] == [event.data for event in events]


def test_a_stream_outlasts_the_timeout_of_requests(run: Run) -> None:
    server = ScriptedServer(httpx.Response(200, text=""))
    assert run(server, lambda client: client.stream(StreamCall(path="/s"))) == []
    assert server.requests[0].extensions["timeout"]["read"] == 90.0


def test_a_refused_stream_is_an_error(run: Run) -> None:
    with pytest.raises(client_package.Forbidden):
        run(
            ScriptedServer(problem(403, "permission-denied")),
            lambda client: client.stream(StreamCall(path="/s")),
        )
