"""Neighborhoods computed per second, for an agent with a full mind and no neighborhoods."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from django.db import connections

from apps.memories.services.graph.neighborhoods import BATCH, refresh_batch
from apps.tenants.scope import APP
from bench import minds
from bench.support.database import connect_as_superuser
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import BenchAgent, populate

# Each session becomes an episode, as when memories are stored.
_EPISODES = """
WITH placed AS (
    INSERT INTO memories_episode (tenant_id, id, agent_id, session, started_at, last_at, ended_at, size, summary,
        summarized_by, failures, failure)
    SELECT tenant_id, gen_random_uuid(), agent_id, session, min(occurred_at), max(occurred_at), now(), count(*), '', '',
        0, ''
    FROM memories_memory WHERE agent_id = %(agent)s GROUP BY tenant_id, agent_id, session RETURNING id, session
)
UPDATE memories_memory m SET episode_id = placed.id, sequence = m.position + 1
FROM placed WHERE m.agent_id = %(agent)s AND m.session = placed.session
"""
# A relation for every second memory.
_EDGES = """
INSERT INTO memories_edge (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation, weight,
    note, origin, created_at)
SELECT a.tenant_id, a.agent_id, gen_random_uuid(), 'memory', a.id, 'memory', b.id, 'associated', 1, '', 'bench', now()
FROM (SELECT *, row_number() OVER (ORDER BY id) AS place FROM memories_memory WHERE agent_id = %(agent)s) a
JOIN (SELECT id, row_number() OVER (ORDER BY occurred_at DESC) AS place FROM memories_memory WHERE agent_id = %(agent)s) b
    ON a.place = b.place
WHERE a.place %% 2 = 0 AND a.id <> b.id
"""
_UPKEEP = """
INSERT INTO memories_upkeep (tenant_id, memory_id, agent_id, stale, unclustered, unextracted, unweighed, unindexed)
SELECT tenant_id, id, agent_id, true, false, false, false, false FROM memories_memory WHERE agent_id = %(agent)s
ON CONFLICT (tenant_id, memory_id) DO NOTHING
"""


def measure(installation: Installation, *, memories: int) -> dict[str, Any]:
    """Return neighborhoods per second and statements per step, for one agent with a number of memories."""
    (agent,) = populate(agents=1, tenants=1)
    with connect_as_superuser(installation) as database:
        minds.load(database, minds.make_turns(memories), [agent])
        for statement in (_EPISODES, _EDGES, _UPKEEP):
            database.execute(statement, {"agent": agent.agent_id})
        minds.vacuum(database)
        print_progress(f"computing {memories} neighborhoods")
        figures = _refresh_all(agent)
        return {"memories": memories, "batch": BATCH, **figures, **_sizes(database, agent)}


def _refresh_all(agent: BenchAgent) -> dict[str, Any]:
    """Compute all stale neighborhoods, and return the pace, the steps' durations and the statements of a step."""
    sent = 0

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal sent
        sent += 1
        return execute(sql, params, many, context)

    done = 0
    ms: list[float] = []
    # The first step opens the connection and plans the statements.
    refresh_batch(agent.tenant_id, agent.agent_id)
    started = time.perf_counter()
    with connections[APP].execute_wrapper(count):
        while computed := _refresh_timed(agent, ms):
            done += computed
    return {
        "computed": done,
        "neighborhoods_per_s": round(done / (time.perf_counter() - started)),
        "queries": round(sent / max(1, len(ms)), 1),
        "step_ms_p50": quantile(ms, 0.5),
        "step_ms_p95": quantile(ms, 0.95),
    }


def _refresh_timed(agent: BenchAgent, ms: list[float]) -> int:
    begun = time.perf_counter()
    computed = refresh_batch(agent.tenant_id, agent.agent_id)
    ms.append((time.perf_counter() - begun) * 1000)
    return computed


def _sizes(database: psycopg.Connection[Any], agent: BenchAgent) -> dict[str, Any]:
    """Return the number of stale neighborhoods, which should be 0, and the mean number of neighbors."""
    row = database.execute(
        "SELECT count(*) FILTER (WHERE stale), avg((SELECT count(*) FROM jsonb_object_keys(neighbors)))"
        " FROM memories_upkeep WHERE agent_id = %s",
        [agent.agent_id],
    ).fetchone()
    assert row is not None
    return {"stale": row[0], "neighbors_mean": round(float(row[1] or 0), 1)}
