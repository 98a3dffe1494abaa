"""One recall, end to end, as every heartbeat does it: by its index alone, and beside it through the table.

The same load is measured in a store of a tenth of the agents before the rest is loaded, and at the end by many clients at
once. `exact` compares each answer with one computed in numpy from all of the agent's rows by the same rule.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import batched, count
from typing import Any

import psycopg
from django.db import connections

from apps.memories.services.recall import recall
from apps.tenants.scope import APP
from bench import minds
from bench.brute import LIMIT, share_exact
from bench.database import superuser
from bench.figures import quantile
from bench.installation import Installation
from bench.population import Inhabitant, populate
from bench.progress import say

#: Answers computed a second time from all rows.
_CHECKED = 40
_INDEX = "memories_memory_mind"
#: The same statement, which then finds its rows by an index and reads them from the table.
_THROUGH_TABLE = "-c enable_indexonlyscan=off"
#: Recalls by the index and through the table take turns, so that both meet the same machine.
_TURN = 20
_WARM_UP = 8
#: The small store has so many times fewer agents.
_FEWER = 10
_CONCURRENT_S = 15.0


def measure(place: Installation, *, memories: int, agents: int, queries: int, clients: int) -> dict[str, Any]:
    """Return how long a recall takes over an agent's `memories`, of `agents` agents that have as many."""
    population = populate(agents=agents, tenants=max(1, agents // 10))
    turns = minds.conversations(memories)
    asked = minds.queries(turns, queries)
    few = population[: agents // _FEWER]
    with superuser(place) as database:
        small = _Timed()
        if few:
            minds.load(database, turns, few)
            say("recalling in the small store")
            _recalls(few, asked, small, options="")
        minds.load(database, turns, population[len(few) :])
        rows = _one(database, "SELECT count(*) FROM memories_memory")
        say("recalling, by the index and through the table in turns")
        before = _index_reads(database)
        covered, heap = _Timed(), _Timed()
        for turn in batched(asked, _TURN, strict=False):
            _recalls(population, turn, covered, options="")
            _recalls(population, turn, heap, options=_THROUGH_TABLE)
        _connect("")
        reads, fetches = (after - start for after, start in zip(_index_reads(database), before, strict=True))
        alone = _Timed()
        _recalls(population, asked, alone, options="")
        say(f"recalling, {clients} at once")
        together = _together(population, asked, clients)
        say("checking against brute force")
        exact = share_exact(database, population[0], asked[:_CHECKED])
        size = _one(database, f"SELECT pg_relation_size('{_INDEX}')")
    return {
        "memories": memories,
        "agents": agents,
        "p50_ms": quantile(alone.ms, 0.5),
        "p95_ms": quantile(alone.ms, 0.95),
        "client_cpu_ms": round(alone.cpu_ms / len(alone.ms), 2),
        "in_turns_p50_ms": quantile(covered.ms, 0.5),
        "in_turns_p95_ms": quantile(covered.ms, 0.95),
        "heap_p50_ms": quantile(heap.ms, 0.5),
        "heap_p95_ms": quantile(heap.ms, 0.95),
        "times_faster": _ratio(quantile(heap.ms, 0.5), quantile(covered.ms, 0.5)),
        "small_store_agents": len(few),
        "small_store_p50_ms": quantile(small.ms, 0.5),
        "small_store_p95_ms": quantile(small.ms, 0.95),
        "flat": _ratio(quantile(alone.ms, 0.5), quantile(small.ms, 0.5)),
        "clients": clients,
        "concurrent_p50_ms": quantile(together, 0.5),
        "concurrent_p95_ms": quantile(together, 0.95),
        "concurrent_per_s": round(len(together) / _CONCURRENT_S, 1),
        "exact": exact == 1.0,
        "exact_share": exact,
        "queries": round(alone.statements / len(alone.ms), 1),
        "index_bytes_per_memory": round(size / rows),
        # Of the entries read from the index, next to none had to be looked up in the table.
        "index_only": reads >= memories and fetches < reads / 100,
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


def _connect(options: str) -> None:
    """Let the next recall open a connection with these options."""
    connections[APP].close()
    connections.settings[APP]["OPTIONS"]["options"] = options
    del connections[APP]


def _recalls(population: Sequence[Inhabitant], asked: Sequence[str], timed: _Timed, *, options: str) -> None:
    """Recall for one agent after the other; the first ones prepare the connection and do not count."""
    _connect(options)
    for text in asked[:_WARM_UP]:
        _recall(population[0], text)
    with connections[APP].execute_wrapper(timed.count):
        cpu = time.process_time()
        for text in asked:
            agent = population[len(timed.ms) % len(population)]
            started = time.perf_counter()
            _recall(agent, text)
            timed.ms.append((time.perf_counter() - started) * 1000)
        timed.cpu_ms += (time.process_time() - cpu) * 1000


def _recall(agent: Inhabitant, text: str) -> None:
    recall(tenant_id=agent.tenant_id, agent_id=agent.agent_id, text=text, limit=LIMIT)


def _together(population: Sequence[Inhabitant], asked: Sequence[str], clients: int) -> list[float]:
    """Return how long each recall took, in ms, of processes that each ask again as soon as they have the answer."""
    # Processes, as workers are; none may inherit an open connection.
    connections.close_all()
    context = multiprocessing.get_context("fork")
    answers: Any = context.SimpleQueue()
    ready = context.Barrier(clients)

    def client(number: int) -> None:
        for text in asked[:_WARM_UP]:
            _recall(population[number % len(population)], text)
        ready.wait()
        ms: list[float] = []
        ends_at = time.monotonic() + _CONCURRENT_S
        for turn in count(number * 7919):
            if time.monotonic() >= ends_at:
                break
            agent = population[turn % len(population)]
            started = time.perf_counter()
            _recall(agent, asked[turn % len(asked)])
            ms.append((time.perf_counter() - started) * 1000)
        answers.put(ms)

    processes = [context.Process(target=client, args=(number,)) for number in range(clients)]
    for process in processes:
        process.start()
    together = [each for _ in processes for each in answers.get()]
    for process in processes:
        process.join()
    return together


def _ratio(slow: float, fast: float) -> float:
    return round(slow / fast, 2) if fast else 0.0


def _index_reads(database: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return how many entries of the index were read, and how many table rows were fetched for them."""
    time.sleep(0.2)
    row = database.execute(
        "SELECT coalesce(idx_tup_read, 0), coalesce(idx_tup_fetch, 0) FROM pg_stat_user_indexes WHERE indexrelname = %s",
        [_INDEX],
    ).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _one(database: psycopg.Connection[Any], statement: str) -> Any:
    row = database.execute(statement).fetchone()
    assert row is not None
    return row[0]
