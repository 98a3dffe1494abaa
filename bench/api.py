"""The API as a process of `arbor up`: the time that HTTP adds to a recall, requests per second, and open streams of signals.

The same questions are asked over HTTP and by the service in this process, in turns, so that both see the same load. Then
clients recall at once; at the end streams of one tenant are opened and one memory after the other is stored.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import batched, count
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import psutil
from django.db import connections

from apps.access.services import create_token
from apps.memories.services.recall.mind_cache import MEMORIES_PER_RECALL
from apps.memories.services.recall.recaller import recall
from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from bench import minds
from bench.support.clients import run_clients
from bench.support.database import connect_as_superuser
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation, PartProcess
from bench.support.population import ACTOR, BenchAgent, populate
from bench.support.streams import measure_streams

_LIMIT = 10
#: Questions over HTTP and in this process alternate in turns of this size.
_TURN = 20
_WARM_UP = 8
_TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class _Served:
    """The running API with the tokens of the tenants."""

    url: str
    tokens: dict[UUID, str]

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection, which is used for many requests."""
        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=_TIMEOUT_S)


def measure(
    installation: Installation,
    *,
    agents: int,
    memories: int,
    queries: int,
    clients: int,
    seconds: float,
    streams: int,
    signals: int,
) -> dict[str, Any]:
    """Return the overhead of HTTP, requests per second, and the memory and delay of the streams."""
    population = populate(agents=agents, tenants=max(1, agents // 10))
    turns = minds.make_turns(memories)
    questions = minds.make_questions(turns, queries)
    with connect_as_superuser(installation) as database:
        minds.load(database, turns, population)
    tokens = {tenant_id: _create_token(tenant_id) for tenant_id in {agent.tenant_id for agent in population}}
    print_progress("starting the API")
    part = installation.part("api")
    part.start()
    part.wait_ready()
    served = _Served(url=part.url, tokens=tokens)
    figures = {"agents": agents, "memories": memories, **_overhead(served, population, questions, memories)}
    figures |= _rate(served, population, questions, clients, seconds)
    print_progress(f"opening {streams} streams")
    rss_before = _rss_mb(part)
    agent = population[0]
    streamed = measure_streams(
        url=part.url,
        token=tokens[agent.tenant_id],
        agent_id=agent.agent_id,
        streams=streams,
        signals=signals,
        sample=lambda: _rss_mb(part),
    )
    return {
        **figures,
        "streams": streamed.opened,
        "streams_mb": streamed.peak,
        "mb_before_streams": rss_before,
        "delivered": streamed.delivered,
        "delivered_p50_ms": quantile(streamed.delays_ms, 0.5),
        "delivered_max_ms": quantile(streamed.delays_ms, 1),
    }


def _create_token(tenant_id: UUID) -> str:
    with tenant_transaction(tenant_id):
        return create_token(name="bench", role=Role.OPERATOR, actor=ACTOR).text


def _overhead(
    served: _Served, population: Sequence[BenchAgent], questions: Sequence[str], memories: int
) -> dict[str, Any]:
    print_progress("recalling, over HTTP and in this process in turns")
    connection = served.connect()
    # Both processes cache minds that have been recalled often enough.
    for agent in population:
        for number in range(_WARM_UP + memories // MEMORIES_PER_RECALL):
            _recall_here(agent, questions[number % len(questions)])
            _recall_over_http(connection, served, agent, questions[number % len(questions)])
    over_http, here = [], []
    for part in batched(enumerate(questions), _TURN, strict=False):
        for number, text in part:
            agent = population[number % len(population)]
            over_http.append(_duration_ms(partial(_recall_over_http, connection, served, agent, text)))
        for number, text in part:
            agent = population[number % len(population)]
            here.append(_duration_ms(partial(_recall_here, agent, text)))
    connection.close()
    return {
        "http_p50_ms": quantile(over_http, 0.5),
        "http_p95_ms": quantile(over_http, 0.95),
        "recall_p50_ms": quantile(here, 0.5),
        "recall_p95_ms": quantile(here, 0.95),
        "overhead_ms_p50": round(quantile(over_http, 0.5) - quantile(here, 0.5), 3),
        "overhead_ms_p95": round(quantile(over_http, 0.95) - quantile(here, 0.95), 3),
    }


def _duration_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _recall_here(agent: BenchAgent, text: str) -> None:
    recall(
        tenant_id=agent.tenant_id,
        request=RecallRequest(agent_id=agent.agent_id, text=text, limit=_LIMIT, now=datetime.now(UTC)),
    )


def _recall_over_http(
    connection: http.client.HTTPConnection, served: _Served, agent: BenchAgent, text: str
) -> None:
    connection.request(
        "POST",
        f"/api/v1/agents/{agent.agent_id}/recall",
        body=json.dumps({"query": text, "limit": _LIMIT}),
        headers={
            "Authorization": f"Bearer {served.tokens[agent.tenant_id]}",
            "Content-Type": "application/json",
        },
    )
    response = connection.getresponse()
    body = response.read()
    if response.status != HTTPStatus.OK:
        raise RuntimeError(f"a recall was answered {response.status}: {body[:500]!r}")


def _rate(
    served: _Served, population: Sequence[BenchAgent], questions: Sequence[str], clients: int, seconds: float
) -> dict[str, Any]:
    """Return the recalls per second of concurrent clients, which ask again as soon as they have the answer."""
    print_progress(f"recalling over HTTP, {clients} at once")
    # Processes must not inherit open connections.
    connections.close_all()

    def client(number: int, wait_for_all: Callable[[], object]) -> list[float]:
        connection = served.connect()
        _recall_over_http(connection, served, population[number % len(population)], questions[0])
        wait_for_all()
        ms: list[float] = []
        ends_at = time.monotonic() + seconds
        for turn in count(number * 7919):
            if time.monotonic() >= ends_at:
                break
            agent, text = population[turn % len(population)], questions[turn % len(questions)]
            ms.append(_duration_ms(partial(_recall_over_http, connection, served, agent, text)))
        connection.close()
        return ms

    durations = [ms for own in run_clients(clients, client) for ms in own]
    return {
        "clients": clients,
        "requests_per_s": round(len(durations) / seconds, 1),
        "concurrent_p50_ms": quantile(durations, 0.5),
        "concurrent_p95_ms": quantile(durations, 0.95),
    }


def _rss_mb(part: PartProcess) -> float:
    """Return the resident memory of the API's processes."""
    processes: list[psutil.Process] = part.processes()
    return round(sum(process.memory_info().rss for process in processes) / 1e6, 1)
