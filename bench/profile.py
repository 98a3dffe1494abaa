"""Processor time of heartbeats by leg, node, need, statement and function, of batches run in this process.

Processor time hardly depends on other load. The stub model is its own process; the broker is a list, so the cost of Celery
is not included (`bench heartbeats` includes it).
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import batched
from typing import Any
from unittest.mock import patch
from uuid import UUID

import psutil
import psycopg
from django.db import connections

import apps.heartbeats.services.legs.runner as runner
from apps.heartbeats.services.calls.calls import execute_calls
from apps.heartbeats.services.legs.committing import commit
from apps.heartbeats.services.legs.fetching import Fetcher
from apps.heartbeats.services.legs.loading import load_batch
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.heartbeats.services.legs.runner import advance_heartbeats
from apps.heartbeats.services.schedule import dispatch
from apps.queues import Task, TaskMessage, captured
from apps.tenants.scope import APP, OPS
from arbor.errors import ArborError
from arbor.heartbeat.state import HeartbeatState
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.engine import NodeResult, Resumable, Steps, Work
from bench import minds
from bench.support.database import connect_as_superuser, is_control, reset_statements, statements, wal_bytes
from bench.support.figures import print_progress
from bench.support.installation import Installation
from bench.support.population import populate
from bench.support.wal import current_lsn, wal_by_relation

_STATEMENTS_SHOWN = 40
_FUNCTIONS_SHOWN = 60

_DUE_NOW = "UPDATE heartbeats_heartbeatschedule SET next_due_at = now() WHERE state = 'idle'"
_FAILED = "SELECT count(*), max(reason) FROM heartbeats_heartbeat WHERE status = 'failed'"
_ROUND_TRIPS = (
    "SELECT round_trips, count(*) FROM heartbeats_heartbeat WHERE status = 'done' GROUP BY 1 ORDER BY 1"
)


class _Account:
    """Processor time and statements, by the names of the running blocks."""

    def __init__(self) -> None:
        self.ms: defaultdict[str, float] = defaultdict(float)
        self.statements: Counter[str] = Counter()
        self.times: Counter[str] = Counter()
        self._open: list[str] = []

    @contextmanager
    def charge(self, name: str) -> Iterator[None]:
        """Charge the processor time of the block to a name; the enclosing blocks' names are charged too."""
        self._open.append(name)
        started = time.thread_time()
        try:
            yield
        finally:
            self.ms[name] += (time.thread_time() - started) * 1000
            self.times[name] += 1
            self._open.pop()

    def count(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        """Count a statement; an execute wrapper for Django."""
        for name in self._open:
            self.statements[name] += 1
        return execute(sql, params, many, context)

    def rows(self, prefix: str, heartbeats: int) -> list[dict[str, Any]]:
        """Return the cost per heartbeat of the names with a prefix, the most expensive first."""
        return [
            {
                "name": name.removeprefix(prefix),
                "ms": round(ms / heartbeats, 3),
                "statements": round(self.statements[name] / heartbeats, 2),
                "times": round(self.times[name] / heartbeats, 2),
            }
            for name, ms in sorted(self.ms.items(), key=lambda item: -item[1])
            if name.startswith(prefix)
        ]


class _ChargedStep:
    """A step whose processor time, without that of its needs, is charged to its name."""

    def __init__(self, name: str, handler: Any, account: _Account) -> None:
        self._name = f"node {name}"
        self._handler = handler
        self._account = account

    def __call__(self, state: HeartbeatState) -> Work[HeartbeatState]:
        """Run the handler."""
        return self._charged(self._handler, state)

    def _charged(self, work_of: Callable[..., Any], *arguments: Any) -> Work[HeartbeatState]:
        with self._account.charge(self._name):
            work = work_of(*arguments)
        return work if isinstance(work, NodeResult) else self._steps(work)

    def _steps(self, work: Steps[HeartbeatState]) -> Steps[HeartbeatState]:
        resume: Callable[[Any], Any] = work.send
        answer: Any = None
        while True:
            try:
                with self._account.charge(self._name):
                    need = resume(answer)
            except StopIteration as stop:
                result: NodeResult[HeartbeatState] = stop.value
                return result
            try:
                resume, answer = work.send, (yield need)
            except ArborError as error:
                resume, answer = work.throw, error


class _ChargedCall(_ChargedStep):
    """A step that waits for a call."""

    def resume(self, state: HeartbeatState, result: Any) -> Work[HeartbeatState]:
        """Resume the handler."""
        return self._charged(self._handler.resume, state, result)


def measure(
    installation: Installation,
    *,
    agents: int,
    tenants: int,
    heartbeats: int,
    memories: int,
    batch: int,
    warm_up: int,
) -> dict[str, Any]:
    """Return the cost of a heartbeat by leg, node, need, statement and function."""
    population = populate(agents=agents, tenants=tenants)
    with connect_as_superuser(installation) as database:
        if memories:
            minds.load(database, minds.make_turns(memories), population)
        print_progress("warming up")
        for _ in range(warm_up):
            _round(database, _Account(), batch)
        rounds = max(1, -(-heartbeats // agents))
        print_progress(f"measuring {rounds * agents} heartbeats")
        account, done = _Account(), 0
        reset_statements(database)
        before, wal_before = _processor_ms(installation), wal_bytes(database)
        start_lsn = current_lsn(database)
        with _watched(account):
            for _ in range(rounds):
                done += _round(database, account, batch)
        spent, written = _processor_ms(installation) - before, wal_bytes(database) - wal_before
        sent = statements(database)
        written_by = wal_by_relation(database, since_lsn=start_lsn, heartbeats=done)
        functions = _profile_functions(database, batch)
        failed = database.execute(_FAILED).fetchone()
        round_trips = dict(database.execute(_ROUND_TRIPS).fetchall())
    assert failed is not None
    if failed[0]:
        print_progress(f"{failed[0]} heartbeats failed: {failed[1]}")
    return {
        "agents": agents,
        "memories": memories,
        "heartbeats": done,
        "failed": failed[0],
        "round_trips": {str(number): count for number, count in round_trips.items()},
        "batch": batch,
        "own_cpu_ms": round(account.ms["leg advance"] / done, 2),
        "postgres_ms": round(spent / done, 2),
        "executing_ms": round(
            sum(statement.total_ms - statement.planning_ms for statement in sent) / done, 2
        ),
        "planning_ms": round(sum(statement.planning_ms for statement in sent) / done, 2),
        "wal_kb": round(written / 1024 / done, 1),
        "wal_by_relation": written_by,
        "statements": round(
            sum(statement.calls for statement in sent if not is_control(statement)) / done, 1
        ),
        "transactions": round(
            sum(statement.calls for statement in sent if statement.text == "COMMIT") / done, 1
        ),
        "legs": account.rows("leg ", done),
        "nodes": account.rows("node ", done),
        "needs": account.rows("need ", done),
        "by_statement": [
            {
                "ms": round(statement.total_ms / done, 3),
                "planning_ms": round(statement.planning_ms / done, 3),
                "times": round(statement.calls / done, 2),
                "text": statement.text[:160],
            }
            for statement in sent[:_STATEMENTS_SHOWN]
        ],
        "functions": functions,
    }


def _round(database: psycopg.Connection[Any], account: _Account, batch: int) -> int:
    """Run one heartbeat of each agent, in batches; return the number of heartbeats."""
    advanced = set[UUID]()
    database.execute(_DUE_NOW)
    with captured() as messages:
        with account.charge("leg dispatch"):
            dispatch()
        while messages:
            groups = defaultdict[tuple[Task, UUID], list[TaskMessage]](list)
            for message in messages:
                groups[message.task, message.tenant_id].append(message)
            messages.clear()
            for (task, tenant_id), group in groups.items():
                for delivered in batched(group, batch, strict=False):
                    advanced |= _deliver(task, tenant_id, delivered, account)
    return len(advanced)


def _deliver(task: Task, tenant_id: UUID, messages: Sequence[TaskMessage], account: _Account) -> set[UUID]:
    if task is Task.ADVANCE:
        with account.charge("leg advance"):
            return advance_heartbeats(
                tenant_id=tenant_id,
                leases=[
                    (UUID(message.arguments["agent_id"]), message.arguments["epoch"]) for message in messages
                ],
            )
    with account.charge("leg execute"):
        # One after another: contention of threads is not part of these figures.
        execute_calls(
            call_ids=[UUID(message.arguments["call_id"]) for message in messages],
            tenant_id=tenant_id,
            submit=lambda work: work(),
        )
    return set()


@contextmanager
def _watched(account: _Account) -> Iterator[None]:
    handlers: Mapping[str, Any] = {
        name: (_ChargedCall if isinstance(handler, Resumable) else _ChargedStep)(name, handler, account)
        for name, handler in HANDLERS.items()
    }
    answer = Fetcher.answer

    def answered(fetcher: Fetcher, kind: type, members: Sequence[LeasedHeartbeat]) -> Any:
        with account.charge(f"need {kind.__name__}"):
            return answer(fetcher, kind, members)

    def charged(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def charged_work(*arguments: Any, **options: Any) -> Any:
            with account.charge(name):
                return work(*arguments, **options)

        return charged_work

    with ExitStack() as stack:
        stack.enter_context(patch.object(runner, "HANDLERS", handlers))
        stack.enter_context(patch.object(Fetcher, "answer", answered))
        stack.enter_context(patch.object(runner, "load_batch", charged("leg advance: load", load_batch)))
        stack.enter_context(patch.object(runner, "commit", charged("leg advance: commit", commit)))
        for alias in (APP, OPS):
            stack.enter_context(connections[alias].execute_wrapper(account.count))
        yield


def _profile_functions(database: psycopg.Connection[Any], batch: int) -> list[dict[str, Any]]:
    """Profile one more round and return the most expensive functions; the profiler slows calls down."""
    profile, account = cProfile.Profile(time.thread_time), _Account()
    profile.enable()
    done = _round(database, account, batch)
    profile.disable()
    functions = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    listed = sorted(functions.items(), key=lambda item: -item[1][2])[:_FUNCTIONS_SHOWN]
    # Arbor's own functions, with their callees.
    own_functions = [
        entry for entry in functions.items() if "/apps/" in entry[0][0] or "/arbor/" in entry[0][0]
    ]
    listed += sorted(own_functions, key=lambda item: -item[1][3])[: 2 * _FUNCTIONS_SHOWN]
    return [
        {
            "own_ms": round(own * 1000 / done, 3),
            "with_callees_ms": round(whole * 1000 / done, 3),
            "calls": round(calls / done, 1),
            "function": f"{'/'.join(file.split('/')[-3:])}:{line} {name}",
        }
        for (file, line, name), (_, calls, own, whole, _) in listed
    ]


def _processor_ms(installation: Installation) -> float:
    """Return the processor time of the database server so far."""
    server = psutil.Process(installation.postgres.pid)
    times = [process.cpu_times() for process in (server, *server.children())]
    return sum(cpu_times.user + cpu_times.system for cpu_times in times) * 1000
