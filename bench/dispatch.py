"""The dispatcher alone: the cost of an idle run, and claims per second."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from apps.heartbeats.services.schedule import dispatch
from apps.queues import captured
from bench.support.database import connect_as_superuser
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import BenchAgent, populate

_IDLE_RUNS = 200

# Only agents and their schedules, which are the rows that a dispatcher uses.
_MORE_AGENTS = """
INSERT INTO agents_agent ({columns}) SELECT {values} FROM agents_agent a, generate_series(1, %s) n WHERE a.id = %s
"""
_SCHEDULES = """
INSERT INTO heartbeats_heartbeatschedule (tenant_id, agent_id, state, next_due_at, interval_s, trigger, epoch, attempts,
    last_error)
SELECT tenant_id, id, 'idle', now() + interval '1 hour', 3600, 'timer', 0, 0, '' FROM agents_agent
ON CONFLICT DO NOTHING
"""


def measure(installation: Installation, *, agents: int, tenants: int) -> dict[str, Any]:
    """Return the time of an idle run, and claims per second with all agents due."""
    per_tenant = max(1, agents // tenants)
    population = populate(agents=tenants, tenants=tenants)
    with connect_as_superuser(installation) as database:
        print_progress(f"creating {per_tenant * tenants} agents")
        _create_agents(database, population, per_tenant)
        idle = _time_idle_runs()
        print_progress("claiming all agents")
        database.execute("UPDATE heartbeats_heartbeatschedule SET next_due_at = now() - interval '1 second'")
        database.execute("VACUUM (ANALYZE) heartbeats_heartbeatschedule")
        claimed, took_s, claim_ms = _claim_all(database)
    return {
        "agents": per_tenant * tenants,
        "tenants": tenants,
        "tick_ms": quantile(idle, 0.5),
        "tick_ms_p95": quantile(idle, 0.95),
        "claimed": claimed,
        "claims_per_s": round(claimed / took_s),
        "claim_ms_per_agent": round(took_s * 1000 / max(claimed, 1), 4),
        "claim_tick_ms_p95": quantile(claim_ms, 0.95),
    }


def _create_agents(database: psycopg.Connection[Any], population: list[BenchAgent], per_tenant: int) -> None:
    columns = [
        name
        for (name,) in database.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'agents_agent'::regclass AND attnum > 0"
            " AND NOT attisdropped"
        )
    ]
    generated = {
        "id": "gen_random_uuid()",
        "name": "a.name || ' ' || n",
        "public_id": "'agent_' || md5(a.id::text || n) || md5(n::text)",
    }
    values = ", ".join(generated.get(name, f"a.{name}") for name in columns)
    statement = _MORE_AGENTS.format(columns=", ".join(columns), values=values)
    for agent in population:
        database.execute(statement, [per_tenant - 1, agent.agent_id])
    database.execute(_SCHEDULES)
    database.execute("UPDATE heartbeats_heartbeatschedule SET next_due_at = now() + interval '1 hour'")
    database.execute("VACUUM (ANALYZE) agents_agent, heartbeats_heartbeatschedule")


def _time_idle_runs() -> list[float]:
    """Return the durations of runs with no agent due, in ms; the first run opens the connection and does not count."""
    ms = []
    for _ in range(_IDLE_RUNS + 1):
        started = time.perf_counter()
        claimed = dispatch()
        ms.append((time.perf_counter() - started) * 1000)
        assert claimed.due == 0
    return ms[1:]


def _claim_all(database: psycopg.Connection[Any]) -> tuple[int, float, list[float]]:
    """Claim until no agent is due; return the number of claims, the seconds in all, and the duration of each run in ms.

    Claimed agents are set to idle, so that the limit of running heartbeats is never reached.
    """
    claimed, took_s = 0, 0.0
    ms: list[float] = []
    while True:
        with captured() as messages:
            started = time.perf_counter()
            due = dispatch().due
            took = time.perf_counter() - started
        if not due:
            return claimed, took_s, ms
        assert len(messages) == due
        claimed, took_s = claimed + due, took_s + took
        ms.append(took * 1000)
        database.execute(
            "UPDATE heartbeats_heartbeatschedule SET state = 'idle', lease_until = NULL WHERE state = 'queued'"
        )
