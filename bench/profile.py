"""The processor time of a heartbeat's own work, by leg, part, need, node, statement and function.

Beats are walked in this process, in batches as a worker gets them. Processor time, not the clock, so that what else the
machine does hardly matters. The model is the stub, a process of its own; the broker is a list, so what Celery costs is not
in these figures (`bench heartbeats` has it).
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch
from uuid import UUID

import psutil
import psycopg
from django.db import connections

from apps.heartbeats.services import walk
from apps.heartbeats.services.calls import fulfil_calls
from apps.heartbeats.services.fetching import Asked, Fetcher
from apps.heartbeats.services.schedule import dispatch
from apps.heartbeats.services.walk import advance_heartbeats
from apps.queues import Message, Task, captured
from apps.tenants.scope import APP, OPS
from arbor.errors import ArborError
from arbor.heartbeat.beat import Beat
from arbor.heartbeat.steps.registry import HANDLERS
from arbor.pipeline.engine import NodeResult, Steps, Work
from bench import minds
from bench.database import is_control, reset_statements, statements, superuser
from bench.figures import quantile
from bench.installation import Installation
from bench.population import populate
from bench.progress import say

#: Beats before any is measured: caches fill, statements are prepared, every mode comes by.
_WARM_UP = 6
_STATEMENTS_SHOWN = 40
_FUNCTIONS_SHOWN = 60

_DUE_NOW = "UPDATE heartbeats_heartbeatschedule SET next_due_at = now() WHERE state = 'idle'"
_FAILED = "SELECT count(*), max(reason) FROM heartbeats_heartbeat WHERE status = 'failed'"
_TURNS = "SELECT turns, count(*) FROM heartbeats_heartbeat WHERE status = 'done' GROUP BY 1 ORDER BY 1"


class _Account:
    """Processor time and statements, by what was going on."""

    def __init__(self) -> None:
        self.ms: defaultdict[str, float] = defaultdict(float)
        self.statements: Counter[str] = Counter()
        self.times: Counter[str] = Counter()
        self._open: list[str] = []

    @contextmanager
    def of(self, name: str, *, times: int = 1) -> Iterator[None]:
        """Charge what the block takes to a name, beside the names around it; it counts so many times."""
        self._open.append(name)
        started = time.thread_time()
        try:
            yield
        finally:
            self.ms[name] += (time.thread_time() - started) * 1000
            self.times[name] += times
            self._open.pop()

    def count(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        """Count a statement: a wrapper of Django's."""
        for name in self._open:
            self.statements[name] += 1
        return execute(sql, params, many, context)

    def rows(self, prefix: str, beats: int) -> list[dict[str, Any]]:
        """Return what the names of one kind took for each beat, the dearest first."""
        return [
            {
                "name": name.removeprefix(prefix),
                "ms": round(ms / beats, 3),
                "statements": round(self.statements[name] / beats, 2),
                "times": round(self.times[name] / beats, 2),
            }
            for name, ms in sorted(self.ms.items(), key=lambda each: -each[1])
            if name.startswith(prefix)
        ]


class _Watched:
    """A node's handler whose work is charged to its name; what it waits for at its needs is not."""

    def __init__(self, name: str, handler: Any, account: _Account) -> None:
        self._name = f"node {name}"
        self._handler = handler
        self._account = account

    def __call__(self, beat: Beat) -> Work[Beat]:
        """Do the work."""
        return self._charged(partial(self._handler, beat))

    def _charged(self, begin: Callable[[], Work[Beat]]) -> Work[Beat]:
        with self._account.of(self._name):
            work = begin()
        return work if isinstance(work, NodeResult) else self._through(work)

    def _through(self, work: Steps[Beat]) -> Steps[Beat]:
        go_on: Callable[[], Any] = partial(next, work)
        while True:
            with self._account.of(self._name, times=0):
                try:
                    need = go_on()
                except StopIteration as stop:
                    result: NodeResult[Beat] = stop.value
                    return result
            try:
                answer = yield need
            except ArborError as refusal:
                go_on = partial(work.throw, refusal)
            else:
                go_on = partial(work.send, answer)


class _WatchedResumable(_Watched):
    """One that may suspend."""

    def resume(self, beat: Beat, result: Any) -> Work[Beat]:
        """Go on."""
        return self._charged(partial(self._handler.resume, beat, result))


def measure(
    place: Installation, *, agents: int, tenants: int, beats: int, memories: int, batch: int
) -> dict[str, Any]:
    """Return what a beat takes, by leg, part of a leg, need, node, statement and function."""
    population = populate(agents=agents, tenants=tenants)
    # As many in a leg as are asked for, however slow the machine is.
    with superuser(place) as database, patch.object(walk, "LEG_MS", 1e9):
        if memories:
            minds.load(database, minds.conversations(memories), population)
        say("warming up")
        for _ in range(_WARM_UP):
            _round(database, _Account(), batch)
        rounds = max(1, -(-beats // agents))
        say(f"measuring {rounds * agents} beats")
        account, own_ms = _Account(), list[float]()
        reset_statements(database)
        before = _processor_ms(place)
        with _watched(account):
            for _ in range(rounds):
                own_ms += _round(database, account, batch)
        spent = _processor_ms(place) - before
        sent = statements(database)
        done = len(own_ms)
        functions = _profiled(database, batch)
        failed = database.execute(_FAILED).fetchone()
        turns = dict(database.execute(_TURNS).fetchall())
    assert failed is not None
    if failed[0]:
        say(f"{failed[0]} heartbeats failed: {failed[1]}")
    return {
        "agents": agents,
        "memories": memories,
        "batch": batch,
        "beats": done,
        "failed": failed[0],
        "turns": {str(number): count for number, count in turns.items()},
        "own_cpu_ms_p50": quantile(own_ms, 0.5),
        "own_cpu_ms_p95": quantile(own_ms, 0.95),
        "postgres_ms": round(spent / done, 2),
        "executing_ms": round(sum(each.total_ms - each.planning_ms for each in sent) / done, 2),
        "planning_ms": round(sum(each.planning_ms for each in sent) / done, 2),
        "statements": round(sum(each.calls for each in sent if not is_control(each)) / done, 1),
        "transactions": round(sum(each.calls for each in sent if each.text == "COMMIT") / done, 1),
        "legs": account.rows("leg ", done),
        "parts": account.rows("part ", done),
        "needs": account.rows("need ", done),
        "nodes": account.rows("node ", done),
        "by_statement": [
            {
                "ms": round(each.total_ms / done, 3),
                "planning_ms": round(each.planning_ms / done, 3),
                "times": round(each.calls / done, 2),
                "text": each.text[:160],
            }
            for each in sent[:_STATEMENTS_SHOWN]
        ],
        "functions": functions,
    }


def _round(database: psycopg.Connection[Any], account: _Account, batch: int) -> list[float]:
    """Let every agent beat once; return the processor time of each one's own work, both legs: its share of each batch."""
    own: defaultdict[UUID, float] = defaultdict(float)
    database.execute(_DUE_NOW)
    with captured() as messages:
        with account.of("leg dispatch"):
            dispatch()
        while messages:
            gathered = _gather(messages, batch)
            started = time.thread_time()
            _deliver(gathered, account)
            share = (time.thread_time() - started) * 1000 / len(gathered)
            for message in gathered:
                if message.task is Task.ADVANCE:
                    own[UUID(message.arguments["agent_id"])] += share
    return list(own.values())


def _gather(messages: list[Message], most: int) -> list[Message]:
    """Take the oldest message with those that go along with it: of the same task and tenant."""
    first = messages[0]
    alike = [each for each in messages if (each.task, each.tenant_id) == (first.task, first.tenant_id)]
    gathered = alike[:most]
    messages[:] = [each for each in messages if each not in gathered]
    return gathered


def _deliver(gathered: Sequence[Message], account: _Account) -> None:
    tenant_id = gathered[0].tenant_id
    arguments = [message.arguments for message in gathered]
    if gathered[0].task is Task.ADVANCE:
        with account.of("leg walk"):
            advance_heartbeats(
                tenant_id=tenant_id, leases=[(UUID(each["agent_id"]), each["epoch"]) for each in arguments]
            )
    else:
        with account.of("leg ask"):
            # One after the other: the time of other threads is not counted.
            fulfil_calls(
                call_ids=[UUID(each["call_id"]) for each in arguments],
                tenant_id=tenant_id,
                submit=lambda work: work(),
            )


@contextmanager
def _watched(account: _Account) -> Iterator[None]:
    handlers: Mapping[str, Any] = {
        name: (_WatchedResumable if hasattr(handler, "resume") else _Watched)(name, handler, account)
        for name, handler in HANDLERS.items()
    }
    answer, embed = Fetcher.answer, Fetcher.embed

    def answered(fetcher: Fetcher, kind: type, asked: Sequence[Asked]) -> list[Any]:
        with account.of(f"need {kind.__name__}", times=len(asked)):
            return answer(fetcher, kind, asked)

    def embedded(fetcher: Fetcher, asked: Sequence[Asked]) -> list[Any]:
        with account.of("part embed"):
            return embed(fetcher, asked)

    with ExitStack() as stack:
        stack.enter_context(patch.object(walk, "HANDLERS", handlers))
        stack.enter_context(patch.object(Fetcher, "answer", answered))
        stack.enter_context(patch.object(Fetcher, "embed", embedded))
        for name in ("load_batch", "commit"):
            stack.enter_context(patch.object(walk, name, _charged(account, name)))
        for alias in (APP, OPS):
            stack.enter_context(connections[alias].execute_wrapper(account.count))
        yield


def _charged(account: _Account, name: str) -> Callable[..., Any]:
    """Return a function of the walk whose time is charged to its name."""
    function = getattr(walk, name)

    def charged(*args: Any, **kwargs: Any) -> Any:
        with account.of(f"part {name.removesuffix('_batch')}"):
            return function(*args, **kwargs)

    return charged


def _profiled(database: psycopg.Connection[Any], batch: int) -> list[dict[str, Any]]:
    """Return the functions that take most, of one more round; the profiler itself slows them, calls most."""
    profile, account = cProfile.Profile(time.thread_time), _Account()
    profile.enable()
    done = len(_round(database, account, batch))
    profile.disable()
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    dearest = sorted(found.items(), key=lambda each: -each[1][2])[:_FUNCTIONS_SHOWN]
    # Ours, with all that they call.
    ours = [each for each in found.items() if "/apps/" in each[0][0] or "/arbor/" in each[0][0]]
    dearest += sorted(ours, key=lambda each: -each[1][3])[: 2 * _FUNCTIONS_SHOWN]
    return [
        {
            "own_ms": round(own * 1000 / done, 3),
            "with_callees_ms": round(whole * 1000 / done, 3),
            "calls": round(calls / done, 1),
            "function": f"{'/'.join(file.split('/')[-3:])}:{line} {name}",
        }
        for (file, line, name), (_, calls, own, whole, _) in dearest
    ]


def _processor_ms(place: Installation) -> float:
    """Return the processor time of the database server so far."""
    server = psutil.Process(place.postgres.pid)
    times = [each.cpu_times() for each in (server, *server.children())]
    return sum(each.user + each.system for each in times) * 1000
