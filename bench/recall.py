"""The duration of one recall: with a cached mind, with one that is not cached, and by scans of index and table.

The scan is also measured with a tenth of the agents, before the others are loaded. At the end many clients recall at once,
first from cached minds, then by scans. `exact` compares answers from cached minds with those of the scan, and of brute
force in numpy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import batched, count
from typing import Any

import psycopg
from django.conf import settings
from django.db import connections

from apps.memories.services.recall.mind_cache import MEMORIES_PER_RECALL, MINDS
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import APP
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import Recalled
from bench import minds
from bench.brute import LIMIT, share_exact
from bench.support.clients import run_clients
from bench.support.database import connect_as_superuser, fetch_value
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import BenchAgent, populate

#: Answers computed a second time from all rows.
_CHECKED = 40
#: Scores that differ by less differ by rounding.
_ROUNDING = 1e-5
_INDEX = "memories_memory_mind"
#: Makes the scan find its rows by an index and read them from the table.
_THROUGH_TABLE = "-c enable_indexonlyscan=off"
#: Recalls by the index and through the table alternate in turns of this size, so that both see the same load.
_TURN = 20
_WARM_UP = 8
#: The large store has this many times the agents of the small one.
_SIZE_RATIO = 10
#: Minds cached in one process, which recalls for these agents in turn.
_CACHED_MINDS = 6
_CONCURRENT_S = 15.0


def measure(
    installation: Installation, *, memories: int, agents: int, queries: int, clients: int
) -> dict[str, Any]:
    """Return the durations of recalls, for `agents` agents with `memories` memories each."""
    population = populate(agents=agents, tenants=max(1, agents // 10))
    turns = minds.make_turns(memories)
    questions = minds.make_questions(turns, queries)
    few = population[: agents // _SIZE_RATIO]
    with connect_as_superuser(installation) as database:
        small = _Timed()
        if few:
            minds.load(database, turns, few)
            print_progress("recalling in the small store")
            with _scanning():
                _time_recalls(few, questions, small, options="")
        minds.load(database, turns, population[len(few) :])
        rows = fetch_value(database, "SELECT count(*) FROM memories_memory")
        scans = _scan_figures(database, population, questions, small, memories)
        figures = {"memories": memories, "agents": agents, **_cached_figures(population, questions, memories)}
        figures |= _concurrent_figures(population, questions, clients, memories) | scans
        print_progress("checking against brute force")
        exact = share_exact(database, population[0], questions[:_CHECKED])
        size = fetch_value(database, f"SELECT pg_relation_size('{_INDEX}')")
    return {
        **figures,
        "exact": exact == 1.0 and figures["same_as_scan"] == 1.0,
        "exact_share": exact,
        "index_bytes_per_memory": round(size / rows),
    }


def _cached_figures(
    population: Sequence[BenchAgent], questions: Sequence[str], memories: int
) -> dict[str, Any]:
    print_progress("recalling from cached minds, and from minds that are not cached")
    _connect("")
    cold = _Timed()
    _time_recalls(population, questions, cold, options="", before=MINDS.clear)
    cached = population[:_CACHED_MINDS]
    loads = _load(cached, questions, memories)
    warm = _Timed()
    _time_recalls(cached, questions, warm, options="")
    now = datetime.now(UTC)
    found = [_recall(cached[number % len(cached)], text, now) for number, text in enumerate(questions)]
    size = MINDS.nbytes / max(1, len(MINDS))
    with _scanning():
        scanned = [_recall(cached[number % len(cached)], text, now) for number, text in enumerate(questions)]
    return {
        "p50_ms": quantile(warm.ms, 0.5),
        "p95_ms": quantile(warm.ms, 0.95),
        "client_cpu_ms": round(warm.cpu_ms / len(warm.ms), 2),
        "queries": round(warm.statements / len(warm.ms), 1),
        "cold_p50_ms": quantile(cold.ms, 0.5),
        "cold_p95_ms": quantile(cold.ms, 0.95),
        "cached_minds": len(cached),
        "bytes_per_cached_mind": round(size),
        "load_p50_ms": quantile(loads, 0.5),
        "same_as_scan": sum(map(_same, found, scanned)) / len(questions),
    }


def _load(population: Sequence[BenchAgent], questions: Sequence[str], memories: int) -> list[float]:
    """Recall until these minds are cached; return the durations of the recalls that loaded them."""
    MINDS.clear()
    loads = []
    for agent in population:
        for number in range(memories // MEMORIES_PER_RECALL):
            _recall(agent, questions[number % len(questions)])
        before = len(MINDS)
        started = time.perf_counter()
        _recall(agent, questions[0])
        loads.append((time.perf_counter() - started) * 1000)
        if len(MINDS) <= before:
            raise RuntimeError(f"the mind of agent {agent.agent_id} was not loaded")
    return loads


def _same(found: Sequence[Recalled], scanned: Sequence[Recalled]) -> bool:
    return [(memory.id, memory.content) for memory in found] == [
        (memory.id, memory.content) for memory in scanned
    ] and all(
        abs(memory.score - other.score) <= _ROUNDING for memory, other in zip(found, scanned, strict=True)
    )


def _scan_figures(
    database: psycopg.Connection[Any],
    population: Sequence[BenchAgent],
    questions: Sequence[str],
    small: _Timed,
    memories: int,
) -> dict[str, Any]:
    print_progress("scanning, by the index and through the table in turns")
    before = _index_reads(database)
    covered, heap, alone = _Timed(), _Timed(), _Timed()
    with _scanning():
        for turn in batched(questions, _TURN, strict=False):
            _time_recalls(population, turn, covered, options="")
            _time_recalls(population, turn, heap, options=_THROUGH_TABLE)
        _connect("")
        reads, fetches = (after - start for after, start in zip(_index_reads(database), before, strict=True))
        _time_recalls(population, questions, alone, options="")
    return {
        "scan_p50_ms": quantile(alone.ms, 0.5),
        "scan_p95_ms": quantile(alone.ms, 0.95),
        "scan_client_cpu_ms": round(alone.cpu_ms / len(alone.ms), 2),
        "scan_queries": round(alone.statements / len(alone.ms), 1),
        "in_turns_p50_ms": quantile(covered.ms, 0.5),
        "in_turns_p95_ms": quantile(covered.ms, 0.95),
        "heap_p50_ms": quantile(heap.ms, 0.5),
        "heap_p95_ms": quantile(heap.ms, 0.95),
        "times_faster": _ratio(quantile(heap.ms, 0.5), quantile(covered.ms, 0.5)),
        "small_store_agents": len(population) // _SIZE_RATIO,
        "small_store_p50_ms": quantile(small.ms, 0.5),
        "small_store_p95_ms": quantile(small.ms, 0.95),
        "flat": _ratio(quantile(alone.ms, 0.5), quantile(small.ms, 0.5)),
        # Less than 1% of the entries read from the index had to be looked up in the table.
        "index_only": reads >= memories and fetches < reads / 100,
    }


def _concurrent_figures(
    population: Sequence[BenchAgent], questions: Sequence[str], clients: int, memories: int
) -> dict[str, Any]:
    print_progress(f"recalling, {clients} at once, from cached minds")
    cached = _recall_concurrently(population, questions, clients, memories)
    print_progress(f"scanning, {clients} at once")
    with _scanning():
        scanning = _recall_concurrently(population, questions, clients, memories)
    return {
        "clients": clients,
        "concurrent_p50_ms": quantile(cached, 0.5),
        "concurrent_p95_ms": quantile(cached, 0.95),
        "concurrent_per_s": round(len(cached) / _CONCURRENT_S, 1),
        "scan_concurrent_p50_ms": quantile(scanning, 0.5),
        "scan_concurrent_p95_ms": quantile(scanning, 0.95),
        "scan_concurrent_per_s": round(len(scanning) / _CONCURRENT_S, 1),
    }


@dataclass(kw_only=True)
class _Timed:
    ms: list[float] = field(default_factory=list)
    statements: int = 0
    cpu_ms: float = 0.0

    def count(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Count a statement that is sent."""
        self.statements += 1
        return execute(sql, params, many, context)


@contextmanager
def _scanning() -> Iterator[None]:
    """Disable the mind cache for recalls."""
    budget = settings.ARBOR_MIND_CACHE_MB
    settings.ARBOR_MIND_CACHE_MB = 0
    try:
        yield
    finally:
        settings.ARBOR_MIND_CACHE_MB = budget


def _connect(options: str) -> None:
    """Close the connection, so that the next recall opens one with these options."""
    connections[APP].close()
    connections.settings[APP]["OPTIONS"]["options"] = options
    del connections[APP]


def _time_recalls(
    population: Sequence[BenchAgent],
    questions: Sequence[str],
    timed: _Timed,
    *,
    options: str,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Recall for one agent after the other; the first recalls prepare the connection and do not count."""
    _connect(options)
    for text in questions[:_WARM_UP]:
        before()
        _recall(population[0], text)
    with connections[APP].execute_wrapper(timed.count):
        for text in questions:
            agent = population[len(timed.ms) % len(population)]
            before()
            cpu = time.process_time()
            started = time.perf_counter()
            _recall(agent, text)
            timed.ms.append((time.perf_counter() - started) * 1000)
            timed.cpu_ms += (time.process_time() - cpu) * 1000


def _recall(agent: BenchAgent, text: str, now: datetime | None = None) -> list[Recalled]:
    return recall(
        tenant_id=agent.tenant_id,
        request=RecallRequest(agent_id=agent.agent_id, text=text, limit=LIMIT, now=now or datetime.now(UTC)),
    )


def _recall_concurrently(
    population: Sequence[BenchAgent], questions: Sequence[str], clients: int, memories: int
) -> list[float]:
    """Return the durations in ms of recalls by concurrent processes, which ask again as soon as they have the answer.

    Each process has its own agents, as many as it caches minds; with fewer agents, processes share them.
    """
    # Processes, like workers, must not inherit open connections.
    connections.close_all()

    def client(number: int, wait_for_all: Callable[[], object]) -> list[float]:
        own_agents = [
            population[(number + turn * clients) % len(population)] for turn in range(_CACHED_MINDS)
        ]
        own_agents = list(dict.fromkeys(own_agents))
        if settings.ARBOR_MIND_CACHE_MB:
            _load(own_agents, questions, memories)
        else:
            for text in questions[:_WARM_UP]:
                _recall(own_agents[0], text)
        wait_for_all()
        ms: list[float] = []
        ends_at = time.monotonic() + _CONCURRENT_S
        for turn in count(number * 7919):
            if time.monotonic() >= ends_at:
                break
            started = time.perf_counter()
            _recall(own_agents[turn % len(own_agents)], questions[turn % len(questions)])
            ms.append((time.perf_counter() - started) * 1000)
        return ms

    return [duration_ms for ms in run_clients(clients, client) for duration_ms in ms]


def _ratio(slow: float, fast: float) -> float:
    return round(slow / fast, 2) if fast else 0.0


def _index_reads(database: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return the numbers of index entries read and of table rows fetched for them."""
    time.sleep(0.2)
    row = database.execute(
        "SELECT coalesce(idx_tup_read, 0), coalesce(idx_tup_fetch, 0) FROM pg_stat_user_indexes WHERE indexrelname = %s",
        [_INDEX],
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])
