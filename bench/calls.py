"""Concurrent model calls of one process, with its memory, connections and rate.

The calls of a few agents are copied; then one model worker executes the copies. The stub model counts concurrent
requests.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg

# Configures the broker, as this process publishes the calls.
import workers.app  # noqa: F401
from apps.calls.services.leased_calls import execution_message
from apps.queues import publish_batched
from bench.fleet import POLL_INTERVAL_S, start_parts
from bench.support.database import connect_as_superuser, fetch_value
from bench.support.figures import print_progress
from bench.support.installation import Installation, PartProcess
from bench.support.population import populate
from bench.support.stub_process import RunningStub

#: Agents whose calls are copied: prompts of several templates.
_AGENTS, _TENANTS = 20, 5
_SAMPLE_EVERY_S = 0.1
_GIVE_UP_AFTER_S = 120.0

_DUE_NOW = "UPDATE heartbeats_heartbeatschedule SET next_due_at = now() WHERE state = 'idle'"
_AGENTS_ASKING = "SELECT count(DISTINCT agent_id) FROM calls_externalcall WHERE status = 'pending'"
# Copies all columns, also future ones.
_COPY = """
INSERT INTO calls_externalcall
SELECT copy.* FROM calls_externalcall original CROSS JOIN generate_series(1, %(copies)s) AS number
CROSS JOIN LATERAL jsonb_populate_record(
    NULL::calls_externalcall, to_jsonb(original) || jsonb_build_object('id', md5(original.id::text || number)::uuid)
) copy
WHERE original.status = 'pending'
"""
_PENDING = "SELECT id, tenant_id FROM calls_externalcall WHERE status = 'pending' ORDER BY id LIMIT %s"
_DROP_REST = "DELETE FROM calls_externalcall WHERE status = 'pending' AND NOT id = ANY(%s)"
_OPEN = "SELECT count(*) FROM calls_externalcall WHERE status IN ('pending', 'running')"
_RESULT = """
SELECT count(*) FILTER (WHERE status = 'complete'), count(*) FILTER (WHERE status = 'failed'),
    extract(epoch FROM max(ended_at) - min(started_at))::float8, max(error)
FROM calls_externalcall WHERE started_at IS NOT NULL
"""
_CONNECTIONS = """
SELECT count(*) FROM pg_stat_activity WHERE application_name = 'arbor model' AND backend_type = 'client backend'
"""


@dataclass
class _Peaks:
    """The highest values sampled so far."""

    rss_bytes: int = 0
    threads: int = 0
    connections: int = 0

    def sample(self, part: PartProcess, database: psycopg.Connection[Any]) -> None:
        """Sample the worker's processes and its connections."""
        processes = [process for process in part.processes() if process.is_running()]
        self.rss_bytes = max(self.rss_bytes, sum(process.memory_info().rss for process in processes))
        self.threads = max(self.threads, sum(process.num_threads() for process in processes))
        self.connections = max(self.connections, int(fetch_value(database, _CONNECTIONS)))


def measure(
    installation: Installation, *, calls: int, threads: int, latency_s: float, stub: RunningStub
) -> dict[str, Any]:
    """Return the number of calls that waited at once in one process, and its memory, connections and rate."""
    populate(agents=_AGENTS, tenants=_TENANTS)
    with connect_as_superuser(installation) as database:
        _begin_heartbeats(installation, database)
        pending = _copy_calls(database, calls)
        print_progress(f"publishing {calls} calls")
        publish_batched(
            execution_message(call_id=call_id, tenant_id=tenant_id, agent_name="bench")
            for call_id, tenant_id in pending
        )
        part, rss_at_start, peaks = _execute_calls(installation, database)
        cpu_s = sum(psutil.Process(part.pid).cpu_times()[:2])
        row = database.execute(_RESULT).fetchone()
    assert row is not None
    complete, failed, seconds, error = row
    if error:
        print_progress(f"a call failed: {error}")
    return {
        "calls": calls,
        "threads": threads,
        "latency_s": latency_s,
        "waiting_at_once": int(stub.stats()["most_waiting"]),
        "rss_mb": round(peaks.rss_bytes / 1e6, 1),
        "idle_rss_mb": round(rss_at_start / 1e6, 1),
        "os_threads": peaks.threads,
        "connections": peaks.connections,
        "calls_per_s": round(complete / seconds, 1),
        "cpu_ms_per_call": round(cpu_s * 1000 / calls, 2),
        "completed": complete,
        "failed": failed,
    }


def _begin_heartbeats(installation: Installation, database: psycopg.Connection[Any]) -> None:
    """Run heartbeats until all agents wait for a model, which no worker calls; then stop the parts."""
    parts = start_parts(installation, ("dispatcher", "heartbeat", "scheduler"))
    print_progress("beginning heartbeats")
    deadline = time.monotonic() + _GIVE_UP_AFTER_S
    while fetch_value(database, _AGENTS_ASKING) < _AGENTS:
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all agents ask their model:\n{parts[1].log_end()}")
        database.execute(_DUE_NOW)
        time.sleep(POLL_INTERVAL_S)
    for part in parts:
        part.ask_to_stop()
    for part in parts:
        part.stop()


def _copy_calls(database: psycopg.Connection[Any], calls: int) -> list[tuple[Any, Any]]:
    """Copy the pending calls until there are `calls` of them; return their ids and tenants."""
    database.execute(_COPY, {"copies": -(-calls // _AGENTS)})
    pending = database.execute(_PENDING, [calls]).fetchall()
    database.execute(_DROP_REST, [[call_id for call_id, _ in pending]])
    return pending


def _execute_calls(
    installation: Installation, database: psycopg.Connection[Any]
) -> tuple[PartProcess, int, _Peaks]:
    """Start the model worker and sample it until no call is open; return the worker, its memory at the start, and the peaks."""
    (part,) = start_parts(installation, ("model",))
    rss_at_start = sum(process.memory_info().rss for process in part.processes())
    peaks, last, progressed_at = _Peaks(), -1, time.monotonic()
    print_progress("waiting for the model")
    while still_open := fetch_value(database, _OPEN):
        peaks.sample(part, database)
        if still_open != last:
            last, progressed_at = still_open, time.monotonic()
        if time.monotonic() - progressed_at > _GIVE_UP_AFTER_S:
            raise RuntimeError(f"{still_open} calls do not end:\n{part.log_end()}")
        time.sleep(_SAMPLE_EVERY_S)
    return part, rss_at_start, peaks
