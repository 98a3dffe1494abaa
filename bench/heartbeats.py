"""Heartbeats per second of this machine, and the cost of a heartbeat.

Each agent is due again when its heartbeat has ended, so the fleet never waits for work. The heartbeats that end within
the measured time are counted from their rows. Afterwards, heartbeats are run one at a time, without load.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from celery import current_app

import workers.app  # noqa: F401
from apps.queues import QUEUE_OF, Task
from bench import minds
from bench.fleet import DOUBLED, Fleet, start_parts
from bench.support.database import (
    Statement,
    connect_as_superuser,
    fetch_value,
    is_control,
    reset_statements,
    statements,
    wal_bytes,
)
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import BenchAgent, populate
from bench.support.stub_process import RunningStub
from bench.support.wal import current_lsn, own_wal_bytes, wal_by_relation

#: The parts of `arbor up` that heartbeats need.
PARTS = ("dispatcher", "heartbeat", "model", "maintenance", "scheduler")
#: A part of the statement that claims due agents, which no other statement has.
_CLAIM = "slot_at = s.next_due_at, trigger = s.next_trigger"
#: The costliest statements that are printed, and the characters of each.
_STATEMENTS_SHOWN, _TEXT_SHOWN = 45, 110

_COUNTS = """
SELECT count(*) FILTER (WHERE status = 'done'), count(*) FILTER (WHERE status = 'failed'),
    count(*) FILTER (WHERE status = 'skipped'), max(reason) FILTER (WHERE status = 'failed')
FROM heartbeats_heartbeat WHERE ended_at > %s AND ended_at <= %s
"""
# Heartbeats by their number of model calls.
_ROUND_TRIPS = """
SELECT greatest(1, round_trips), count(*) FROM heartbeats_heartbeat
WHERE status = 'done' AND ended_at > %s AND ended_at <= %s GROUP BY 1 ORDER BY 1
"""
#: Columns: the elapsed time of a heartbeat's legs in Arbor's own code, and the heartbeat's share of it within its batches.
_ELAPSED, _SHARE = "elapsed_ms", "own_ms"


@dataclass(frozen=True, kw_only=True)
class _Window:
    """The measured time, by the clocks of the database and of this process."""

    since: datetime
    until: datetime
    seconds: float


def measure(
    installation: Installation,
    *,
    agents: int,
    tenants: int,
    seconds: float,
    heartbeats: int | None,
    memories: int,
    latency_ms: float,
    warm_up: int,
    lone: int,
    stub: RunningStub,
) -> dict[str, Any]:
    """Return heartbeats per second and their cost under load, and the own time of a lone heartbeat."""
    population = populate(agents=agents, tenants=tenants)
    if memories:
        with connect_as_superuser(installation) as database:
            minds.load(database, minds.make_turns(memories), population)
    parts = start_parts(installation, PARTS)
    with connect_as_superuser(installation) as database:
        fleet = Fleet(database=database, parts=parts, installation=installation, stub=stub)
        print_progress("warming up")
        fleet.run_until(ended=agents * warm_up)
        figures = _measure_load(fleet, agents=agents, seconds=seconds, heartbeats=heartbeats)
        fleet.drain()
        fleet.wait_for_rest()
        alone = run_lone_heartbeats(database, population, heartbeats=lone)
        doubled = fetch_value(database, DOUBLED)
    return {
        "agents": agents,
        "tenants": tenants,
        "memories": memories,
        "latency_ms": latency_ms,
        **figures,
        "doubled": doubled,
        "lone_ms_p50": quantile(alone, 0.5),
        "lone_ms_p95": quantile(alone, 0.95),
        "lone_heartbeats": len(alone),
    }


def _measure_load(fleet: Fleet, *, agents: int, seconds: float, heartbeats: int | None) -> dict[str, Any]:
    """Measure a number of heartbeats, or whole rounds of all agents for a number of seconds.

    Queues are first in, first out, so heartbeats that were due together end together: in a part of a round, too many or too few
    would end.
    """
    print_progress(f"measuring {f'{heartbeats} heartbeats' if heartbeats else f'{seconds:.0f} s'}")
    database = fleet.database
    reset_statements(database)
    cpu_before, wal_before, start_lsn = fleet.cpu_s(), wal_bytes(database), current_lsn(database)
    since, started = fetch_value(database, "SELECT now()"), time.monotonic()
    target = fleet.ended() + (heartbeats or agents)
    fleet.run_until(ended=target)
    while heartbeats is None and time.monotonic() < started + seconds:
        target += agents
        fleet.run_until(ended=target)
    until, took_s = fetch_value(database, "SELECT now()"), time.monotonic() - started
    cpu_after, wal_after, sent = fleet.cpu_s(), wal_bytes(database), statements(database)
    window = _Window(since=since, until=until, seconds=took_s)
    counts = _counts(database, window)
    done = max(counts["completed"], 1)
    _print_costliest(sent, done)
    own_wal, written_by = (
        own_wal_bytes(database),
        wal_by_relation(database, since_lsn=start_lsn, heartbeats=done),
    )
    return {
        "seconds": round(took_s, 1),
        "heartbeats_per_s": round(counts["completed"] / took_s, 1),
        **_own_times(database, window),
        **_round_trips(database, window, done),
        "queries_per_heartbeat": round(
            sum(statement.calls for statement in sent if not is_control(statement)) / done, 1
        ),
        "transactions_per_heartbeat": round(_calls(sent, "COMMIT") / done, 1),
        "wal_kb_per_heartbeat": round((wal_after - wal_before) / 1024 / done, 1),
        # A part of that: written by the statements that make agents due, which an installation does not need.
        "wal_kb_of_making_due": round(own_wal / 1024 / done, 1),
        "wal_by_relation": written_by,
        "claim_ms_per_agent": claim_ms(sent),
        "cpu_ms_per_heartbeat": {
            name: round((cpu_after[name] - cpu_before[name]) * 1000 / done, 2) for name in cpu_after
        },
        **counts,
    }


def _counts(database: psycopg.Connection[Any], window: _Window) -> dict[str, int]:
    """Count the heartbeats that ended in the window; `processed` counts the completed and the skipped ones."""
    row = database.execute(_COUNTS, [window.since, window.until]).fetchone()
    assert row is not None
    completed, failed, skipped, reason = row
    if reason:
        print_progress(f"a heartbeat failed: {reason}")
    return {
        "completed": completed,
        "failed": failed,
        "skipped": skipped,
        "processed": completed + skipped,
    }


def _own_times(database: psycopg.Connection[Any], window: _Window) -> dict[str, float]:
    """Return the own times of the completed heartbeats: the share, and the elapsed time."""
    figures: dict[str, float] = {}
    sums: dict[str, float] = {}
    for name in (_SHARE, _ELAPSED):
        query = f"SELECT {name} FROM heartbeats_heartbeat WHERE status = 'done' AND ended_at > %s AND ended_at <= %s"
        times = [ms for (ms,) in database.execute(query, [window.since, window.until])]
        figures |= {f"{name}_p50": quantile(times, 0.5), f"{name}_p95": quantile(times, 0.95)}
        sums[name] = sum(times)
    if sums[_SHARE]:
        # A share is the elapsed time divided by the size of the batch, so the quotient of the sums is the effective size.
        figures["heartbeats_per_batch"] = round(sums[_ELAPSED] / sums[_SHARE], 2)
    return figures


def _round_trips(database: psycopg.Connection[Any], window: _Window, done: int) -> dict[str, Any]:
    round_trips = dict(database.execute(_ROUND_TRIPS, [window.since, window.until]).fetchall())
    return {
        "heartbeats_by_round_trips": {str(number): count for number, count in round_trips.items()},
        "calls_per_heartbeat": round(sum(number * count for number, count in round_trips.items()) / done, 2),
    }


def _calls(sent: Sequence[Statement], start: str) -> int:
    return sum(statement.calls for statement in sent if statement.text.startswith(start))


def claim_ms(sent: Sequence[Statement]) -> float:
    """Return the time of the database for the claim of one due agent, in ms; 0 without a claim."""
    claims = [statement for statement in sent if _CLAIM in statement.text]
    rows = sum(claim.rows for claim in claims)
    return round(sum(claim.total_ms for claim in claims) / rows, 3) if rows else 0.0


def _print_costliest(sent: Sequence[Statement], heartbeats: int) -> None:
    for statement in sent[:_STATEMENTS_SHOWN]:
        print_progress(
            f"{statement.total_ms / heartbeats:7.3f} ms {statement.calls / heartbeats:6.2f}×  {statement.text[:_TEXT_SHOWN]}"
        )


#: Agents used in turn.
_AGENTS = 10
_POLL_S = 0.005
_GIVE_UP_AFTER_S = 60.0
#: Tries for each heartbeat, because heartbeats of idle agents are skipped.
_TRIES = 4

_MAKE_DUE = """
UPDATE heartbeats_heartbeatschedule SET next_due_at = now() WHERE agent_id = %s AND state = 'idle' RETURNING next_due_at
"""
_STATUS = """
SELECT status FROM heartbeats_heartbeat WHERE agent_id = %s AND slot_at = %s AND status IN ('done', 'failed', 'skipped')
"""


def run_lone_heartbeats(
    database: psycopg.Connection[Any], population: Sequence[BenchAgent], *, heartbeats: int
) -> list[float]:
    """Run heartbeats one at a time until `heartbeats` of them are done; return their elapsed own times in ms.

    The dispatcher is called at once, so that no heartbeat waits for its period.
    """
    print_progress(f"measuring {heartbeats} lone heartbeats")
    agents = [agent.agent_id for agent in population[:_AGENTS]]
    times: list[float] = []
    for turn in range(heartbeats * _TRIES):
        agent_id = agents[turn % len(agents)]
        slot_at = database.execute(_MAKE_DUE, [agent_id]).fetchone()
        if slot_at is None:
            raise RuntimeError(f"the agent {agent_id} is not idle, and nothing else runs")
        current_app.send_task(Task.DISPATCH.value, queue=QUEUE_OF[Task.DISPATCH].value)
        if _wait(database, agent_id, slot_at[0]) == "done":
            query = f"SELECT {_ELAPSED} FROM heartbeats_heartbeat WHERE agent_id = %s AND slot_at = %s"
            times.extend(ms for (ms,) in database.execute(query, [agent_id, slot_at[0]]))
        if len(times) >= heartbeats:
            break
    return times


def _wait(database: psycopg.Connection[Any], agent_id: UUID, slot_at: datetime) -> str:
    """Wait until the agent's heartbeat of this slot has ended; return its status."""
    deadline = time.monotonic() + _GIVE_UP_AFTER_S
    while time.monotonic() < deadline:
        row = database.execute(_STATUS, [agent_id, slot_at]).fetchone()
        if row is not None:
            return str(row[0])
        time.sleep(_POLL_S)
    raise RuntimeError(f"a lone heartbeat of the agent {agent_id} has not ended for {_GIVE_UP_AFTER_S:.0f} s")
