"""The total deadline and the shared client, against a real server."""

from __future__ import annotations

import multiprocessing
import socket
import threading
import time
import traceback
import warnings
from collections.abc import Iterator

import httpcore
import httpx
import pytest

from arbor.adapters import transport
from arbor.adapters.connect import connect_model
from arbor.adapters.credentials import Credentials
from arbor.adapters.dialect import DialectCache
from arbor.adapters.exchange import ApiEndpoint
from arbor.adapters.openai import ChatCompletionsModel
from arbor.adapters.transport import TIMEOUT, DeadlineTransport, DirectClient, shared_client
from arbor.errors import ModelError, ModelRejected, ModelTimeout, ModelUnavailable
from arbor.models.breaker import Breakers
from arbor.models.handles import Handle
from bench.support.stub_model import Mode
from bench.support.stub_process import RunningStub, stub_model
from tests.unit.adapters.openai_server import request_with


@pytest.fixture(params=["direct", "by httpx"])
def client(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    wide = DeadlineTransport(connections=300)
    direct = request.param == "direct"
    with DirectClient(wide) if direct else httpx.Client(transport=wide, timeout=TIMEOUT) as client:
        yield client


def model_at(base_url: str, client: httpx.Client, *, model: str = "stub") -> ChatCompletionsModel:
    return ChatCompletionsModel(
        Handle.parse(f"openai/{model}"),
        endpoint=ApiEndpoint(provider="openai", url=f"{base_url}/chat/completions"),
        client=client,
        dialects=DialectCache(),
    )


def failure_of(model: ChatCompletionsModel, *, deadline_s: float) -> tuple[ModelError, float]:
    """Return the error of a call, and its time in seconds."""
    started = time.monotonic()
    with pytest.raises(ModelError) as failure:
        model.complete(request_with(), deadline_s=deadline_s)
    return failure.value, time.monotonic() - started


@pytest.mark.bar
@pytest.mark.parametrize("mode", [Mode.SILENT, Mode.DRIP, Mode.DRIP_HEAD])
def test_a_server_that_is_silent_or_drips_meets_the_deadline(
    stub: RunningStub, client: httpx.Client, mode: Mode
) -> None:
    failure, took_s = failure_of(model_at(stub.base_url, client, model=f"stub-{mode}"), deadline_s=0.8)

    assert isinstance(failure, ModelTimeout)
    assert 0.7 < took_s < 1.8


@pytest.mark.bar
def test_a_server_that_never_reads_meets_the_deadline(client: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        model = model_at(f"http://127.0.0.1:{deaf.getsockname()[1]}/v1", client)
        request = request_with({"description": "x" * 8_000_000})
        started = time.monotonic()

        with pytest.raises(ModelTimeout):
            model.complete(request, deadline_s=0.6)

        assert time.monotonic() - started < 3.0


@pytest.mark.bar
def test_a_name_that_does_not_resolve_in_time_meets_the_deadline(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: resolved.wait(20) and [])

    failure, took_s = failure_of(model_at("http://model.test/v1", client), deadline_s=0.5)
    resolved.set()

    assert isinstance(failure, ModelTimeout)
    assert took_s < 1.5


def test_a_name_that_does_not_exist_makes_the_provider_unavailable(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)

    failure, _ = failure_of(model_at("http://model.test/v1", client), deadline_s=5)

    assert isinstance(failure, ModelUnavailable)
    assert "model.test does not resolve" in str(failure)


def test_a_name_that_cannot_be_looked_up_fails_at_once(client: httpx.Client) -> None:
    failure, _ = failure_of(model_at(f"http://{'a' * 64}.test/v1", client), deadline_s=2)

    assert isinstance(failure, ModelUnavailable)
    assert "does not resolve" in str(failure)


def test_every_address_of_a_name_is_tried(
    stub: RunningStub, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = httpx.URL(stub.base_url).port
    rows = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.9", "127.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)

    reply = model_at(f"http://model.test:{port}/v1", client).complete(request_with(), deadline_s=5)

    assert reply.finish_reason == "stop"


@pytest.mark.bar
@pytest.mark.parametrize("mode", [Mode.HANG_UP, Mode.BROKEN, Mode.FLOOD, Mode.ERROR, Mode.LIMIT])
def test_a_server_that_breaks_makes_the_provider_unavailable(
    stub: RunningStub, client: httpx.Client, mode: Mode
) -> None:
    failure, took_s = failure_of(model_at(stub.base_url, client, model=f"stub-{mode}"), deadline_s=10)

    assert isinstance(failure, ModelUnavailable)
    assert took_s < 5


def test_a_closed_port_makes_the_provider_unavailable(client: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    failure, _ = failure_of(model_at(f"http://127.0.0.1:{port}/v1", client), deadline_s=5)

    assert isinstance(failure, ModelUnavailable)
    assert "refused" in str(failure)


def test_a_client_still_works_after_failures(stub: RunningStub, client: httpx.Client) -> None:
    for mode in (Mode.DRIP, Mode.HANG_UP, Mode.FLOOD, Mode.SILENT):
        failure_of(model_at(stub.base_url, client, model=f"stub-{mode}"), deadline_s=0.5)

    assert model_at(stub.base_url, client).complete(request_with(), deadline_s=10).text


def test_a_server_that_refuses_schemas_is_asked_without_one(stub: RunningStub, client: httpx.Client) -> None:
    assert (
        model_at(stub.base_url, client, model="stub-no-schema").complete(request_with(), deadline_s=10).text
    )


@pytest.mark.bar
def test_two_hundred_threads_wait_at_once_on_one_client(client: httpx.Client) -> None:
    with stub_model(latency_s=2.0) as slow:
        model = model_at(slow.base_url, client)
        replies: list[str] = []
        threads = [
            threading.Thread(
                target=lambda: replies.append(model.complete(request_with(), deadline_s=30).text)
            )
            for _ in range(200)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stats = slow.stats()

    assert len(replies) == 200
    assert stats["served"] == 200
    assert stats["most_waiting"] == 200


@pytest.mark.bar
def test_two_hundred_calls_to_a_silent_server_end_at_the_deadline(
    stub: RunningStub, client: httpx.Client
) -> None:
    model = model_at(stub.base_url, client, model="stub-silent")
    ends: list[tuple[type[ModelError], float]] = []

    def ask() -> None:
        failure, took_s = failure_of(model, deadline_s=2.0)
        ends.append((type(failure), took_s))

    threads = [threading.Thread(target=ask) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {kind for kind, _ in ends} == {ModelTimeout}
    assert max(took_s for _, took_s in ends) < 5.0


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[socket.socket]:
    """Return a list that records the connections that are opened."""
    connections: list[socket.socket] = []
    really_connect = socket.create_connection

    def connect(*args: object, **kwargs: object) -> socket.socket:
        connections.append(really_connect(*args, **kwargs))  # type: ignore[arg-type]
        return connections[-1]

    monkeypatch.setattr(socket, "create_connection", connect)
    return connections


def test_connections_are_reused(stub: RunningStub, client: httpx.Client, opened: list[socket.socket]) -> None:
    model = model_at(stub.base_url, client)

    for _ in range(5):
        model.complete(request_with(), deadline_s=10)

    assert len(opened) == 1


def test_a_call_to_another_server_closes_expired_connections(
    stub: RunningStub, client: httpx.Client, opened: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(transport, "monotonic", lambda: now)
    model_at(stub.base_url, client).complete(request_with(), deadline_s=10)
    assert opened[0].fileno() >= 0

    now = transport.IDLE_S + 1
    model_at(stub.base_url.replace("127.0.0.1", "localhost"), client).complete(request_with(), deadline_s=10)

    assert [connection.fileno() < 0 for connection in opened] == [True, False]


def test_calls_beyond_the_connections_fail_after_a_wait(stub: RunningStub) -> None:
    patient = httpx.Timeout(connect=5.0, write=5.0, read=None, pool=0.3)
    with httpx.Client(transport=DeadlineTransport(connections=1), timeout=patient) as narrow:
        silent = model_at(stub.base_url, narrow, model="stub-silent")
        holder = threading.Thread(target=failure_of, args=[silent], kwargs={"deadline_s": 4.0})
        holder.start()
        while stub.stats()["waiting"] == 0:
            time.sleep(0.01)

        failure, _ = failure_of(model_at(stub.base_url, narrow), deadline_s=10)
        holder.join()

        assert isinstance(failure, ModelUnavailable)
        assert "all connections of this process are in use" in str(failure)
        assert not failure.provider_fault
        assert model_at(stub.base_url, narrow).complete(request_with(), deadline_s=10).text


def test_a_connection_that_fails_to_close_gives_its_place_back(
    stub: RunningStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = httpcore.ConnectionPool.close

    def fail(pool: httpcore.ConnectionPool) -> None:
        close(pool)
        raise OSError("cannot close")

    patient = httpx.Timeout(connect=5.0, write=5.0, read=None, pool=0.3)
    limited = DeadlineTransport(connections=1, idle_per_origin=0)
    with httpx.Client(transport=limited, timeout=patient) as narrow:
        monkeypatch.setattr(httpcore.ConnectionPool, "close", fail)
        with pytest.raises(OSError, match="cannot close"):
            narrow.get(stub.base_url)
        monkeypatch.setattr(httpcore.ConnectionPool, "close", close)

        assert model_at(stub.base_url, narrow).complete(request_with(), deadline_s=10).text


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    stub: RunningStub, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://someone:secret@127.0.0.1:9")

    assert model_at(stub.base_url, client).complete(request_with(), deadline_s=10).text
    failure, _ = failure_of(model_at("http://model.test/v1", client), deadline_s=5)

    assert isinstance(failure, ModelUnavailable)
    assert "refused" in str(failure)
    assert "secret" not in str(failure)


@pytest.mark.parametrize(
    "proxy",
    [
        "ftp://someone:secret@proxy",
        "socks5://proxy:1080",
        "http://someone:secret@",
        "http://someone:secret/pass@proxy",
        "proxy:port",
    ],
)
def test_an_unusable_proxy_is_named_with_what_would_be_right(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)

    failure, _ = failure_of(model_at("http://model.test/v1", client), deadline_s=5)

    assert isinstance(failure, ModelRejected)
    assert "HTTP_PROXY cannot be used; it must be http://HOST:PORT or https://HOST:PORT" in str(failure)
    assert "secret" not in "".join(traceback.format_exception(failure))


def test_a_process_has_one_client() -> None:
    mine = shared_client()
    connect_model("ollama/llama3.2", Credentials(), breakers=Breakers())
    assert shared_client() is mine
    mine.close()
    shared_client.cache_clear()


def test_a_forked_child_opens_connections_of_its_own(
    stub: RunningStub, client: httpx.Client, opened: list[socket.socket]
) -> None:
    model = model_at(stub.base_url, client)
    model.complete(request_with(), deadline_s=10)
    receiving, sending = multiprocessing.get_context("fork").Pipe(duplex=False)

    def call() -> None:
        for _ in range(2):
            model.complete(request_with(), deadline_s=10)
        sending.send(len(opened))

    child = multiprocessing.get_context("fork").Process(target=call)
    with warnings.catch_warnings():
        # Python warns about forking a process with threads, the subject of this test.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    child.join()

    assert child.exitcode == 0
    assert receiving.recv() == 2
    model.complete(request_with(), deadline_s=10)
    assert len(opened) == 1
