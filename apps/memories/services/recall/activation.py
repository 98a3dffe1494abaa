"""Activations: raised by the agent's own recalls, and read for its next heartbeat.

The table is a cache and unlogged: after a crash of the database it is empty, and fills again as the agent recalls.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.memories.services.jobs.rounds import Round, make_round
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid
from arbor.memory.activation import (
    CAP,
    FLOOR,
    MOST_KEPT,
    MOST_REACHED,
    MOST_TELLING,
    SPREAD,
    THEMES_SHOWN,
    ActiveCluster,
    ActiveMemory,
    fades_within,
    sources,
)
from arbor.memory.neighborhood import HIGHEST

#: Faded rows that one step drops.
_DROPPED = 5_000
#: Beyond this number of half lives PostgreSQL raises an underflow; nothing is left long before.
_LONGEST = 64

# `arbor.memory.activation.level_after`.
_LEVEL = f"""a.level * 0.5 ^ least({_LONGEST}, greatest(
    0, extract(epoch FROM coalesce(%(now)s::timestamptz, now()) - a.at)::float8 / %(half_life)s
))"""
# `arbor.memory.activation.spread`, for each agent by itself; clusters that maintenance has in hand go uncounted rather than
# delay a heartbeat.
_RAISE = f"""
WITH recalled AS MATERIALIZED (
    SELECT (%(agents)s::uuid[])[r.agent] AS agent_id, r.id, r.level
    FROM unnest(%(numbers)s::int[], %(ids)s::uuid[], %(levels)s::float8[]) AS r(agent, id, level)
), reached AS (
    SELECT agent_id, id, level FROM recalled
    UNION ALL
    SELECT r.agent_id, near.key::uuid, r.level * {SPREAD} * near.value::float8 / {HIGHEST}
    FROM memories_upkeep u JOIN recalled r ON r.agent_id = u.agent_id AND r.id = u.memory_id
    CROSS JOIN LATERAL jsonb_each_text(u.neighbors) near
    WHERE u.tenant_id = %(tenant)s AND u.memory_id = ANY(%(ids)s::uuid[])
), summed AS (
    SELECT agent_id, id, sum(level) AS level FROM reached GROUP BY agent_id, id HAVING sum(level) >= {FLOOR}
), ranked AS (
    SELECT m.agent_id, m.id, s.level,
        row_number() OVER (PARTITION BY m.agent_id ORDER BY s.level DESC, m.id) AS place
    FROM memories_memory m JOIN summed s ON s.agent_id = m.agent_id AND s.id = m.id
    WHERE m.tenant_id = %(tenant)s AND m.id = ANY((SELECT array_agg(id) FROM summed)::uuid[]) AND m.status = 'active'
), touched AS (
    SELECT c.id FROM memories_cluster c JOIN (
        SELECT DISTINCT r.agent_id, member.cluster_id
        FROM memories_clustermember member JOIN recalled r ON r.id = member.memory_id
        WHERE member.tenant_id = %(tenant)s AND member.memory_id = ANY(%(ids)s::uuid[])
    ) theme ON theme.cluster_id = c.id AND theme.agent_id = c.agent_id
    WHERE c.tenant_id = %(tenant)s ORDER BY c.id FOR UPDATE OF c SKIP LOCKED
), counted AS (
    UPDATE memories_cluster c SET activations = activations + 1, activated_at = coalesce(%(now)s::timestamptz, now())
    FROM touched WHERE c.tenant_id = %(tenant)s AND c.id = touched.id
), used AS (
    INSERT INTO memories_memoryaccess AS used (tenant_id, memory_id, count, last_at)
    SELECT m.tenant_id, m.id, 1, coalesce(%(now)s::timestamptz, now())
    FROM memories_memory m JOIN recalled r ON r.agent_id = m.agent_id AND r.id = m.id
    WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[]) ORDER BY m.id
    ON CONFLICT (tenant_id, memory_id) DO UPDATE SET count = used.count + 1, last_at = EXCLUDED.last_at
)
INSERT INTO memories_activation AS a (tenant_id, memory_id, agent_id, level, at)
SELECT %(tenant)s, id, agent_id, least({CAP}, level), coalesce(%(now)s::timestamptz, now()) FROM ranked
WHERE place <= {MOST_REACHED} ORDER BY id
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET level = least({CAP}, {_LEVEL} + EXCLUDED.level), at = EXCLUDED.at
"""  # noqa: S608 (our own numbers)
_PRESENT = f"""
SELECT memory_id, level FROM (
    SELECT memory_id, {_LEVEL} AS level FROM memories_activation a
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s ORDER BY at DESC LIMIT {MOST_KEPT}
) latest WHERE level >= {FLOOR} ORDER BY level DESC, memory_id
"""  # noqa: S608
_MEMORIES = f"""
SELECT m.id, present.level FROM ({_PRESENT}) present
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = present.memory_id AND m.status = 'active'
ORDER BY present.level DESC, m.id LIMIT %(limit)s
"""  # noqa: S608
#: An agent's clusters, the most present first: to be read alone, or within another statement. Its values are
#: `cluster_values()`, and `agent`.
THEMES = f"""
SELECT c.id, c.name, c.keywords::json AS keywords, c.emotional_valence, c.emotional_intensity, theme.activation,
    theme.members
FROM (
    SELECT m.cluster_id, sum(present.level * m.strength) AS activation, count(*) AS members
    FROM ({_PRESENT} LIMIT {MOST_TELLING}) present
    JOIN memories_clustermember m ON m.tenant_id = %(tenant)s AND m.memory_id = present.memory_id
    GROUP BY m.cluster_id
) theme JOIN memories_cluster c ON c.tenant_id = %(tenant)s AND c.id = theme.cluster_id
ORDER BY theme.activation DESC, c.id LIMIT %(themes)s
"""  # noqa: S608
_FADED = f"""
SELECT agent_id FROM memories_activation WHERE tenant_id = t.id
GROUP BY agent_id HAVING count(*) > {MOST_KEPT} OR min(at) < now() - {{faded}}
"""  # noqa: S608
_DROP = f"""
WITH faded AS MATERIALIZED (
    SELECT memory_id FROM memories_activation a
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND ({_LEVEL} < {FLOOR} OR memory_id NOT IN (
        SELECT memory_id FROM memories_activation a WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
        ORDER BY {_LEVEL} DESC, memory_id LIMIT {MOST_KEPT}
    ))
    ORDER BY memory_id LIMIT {_DROPPED} FOR UPDATE SKIP LOCKED
)
DELETE FROM memories_activation a USING faded WHERE a.tenant_id = %(tenant)s AND a.memory_id = faded.memory_id
"""  # noqa: S608


def note_recall(*, agent_id: UUID, recalled: Mapping[UUID, float], now: datetime | None = None) -> int:
    """Record what one agent has recalled, as `note_recalls` does; return how many memories are in mind by it."""
    return note_recalls({agent_id: recalled}, now=now)


def note_recalls(recalled: Mapping[UUID, Mapping[UUID, float]], *, now: datetime | None = None) -> int:
    """Record what agents themselves have recalled: for each agent, its memories by id with their scores.

    They come to mind, with what is near to them; they count as used, and their clusters one activation each. Returns how
    many memories are in mind by it. In the open transaction, one statement for all agents; rows are locked in the order
    of their ids. Ids that are not the agent's are ignored; raises Invalid for a score that is not finite.
    """
    agents: list[UUID] = []
    numbers: list[int] = []
    ids: list[UUID] = []
    levels: list[float] = []
    for agent_id, scores in recalled.items():
        if scores:
            agents.append(agent_id)
            present = sources(scores)
            numbers += [len(agents)] * len(present)
            ids += present.keys()
            levels += present.values()
    if not agents:
        return 0
    return change(_RAISE, agents=agents, numbers=numbers, ids=ids, levels=levels, **_fading(now))


def activated_memories(*, agent_id: UUID, limit: int = 20, now: datetime | None = None) -> list[ActiveMemory]:
    """Return what is present in the agent's mind, the most present first. One statement; changes nothing."""
    rows = fetch(_MEMORIES, agent=agent_id, limit=_checked(limit), **_fading(now))
    return [ActiveMemory(id=memory_id, level=level) for memory_id, level in rows]


def activated_clusters(
    *, agent_id: UUID, limit: int = THEMES_SHOWN, now: datetime | None = None
) -> list[ActiveCluster]:
    """Return the clusters that the agent's mind is on, the most present first. One statement; changes nothing."""
    values = {**cluster_values(now), "themes": _checked(limit)}
    return [
        ActiveCluster(
            id=row[0],
            name=row[1],
            keywords=tuple(row[2]),
            emotional_valence=row[3],
            emotional_intensity=row[4],
            activation=row[5],
            members=row[6],
        )
        for row in fetch(THEMES, agent=agent_id, **values)
    ]


def cluster_values(now: datetime | None = None) -> dict[str, Any]:
    """Return the values that THEMES takes beside the tenant and the agent."""
    return {**_fading(now), "themes": THEMES_SHOWN}


def trim_activations() -> Round:
    """Drop what has faded, and of each agent all but the MOST_KEPT most present."""
    faded = fades_within(settings.ARBOR_ACTIVATION_HALF_LIFE)
    waiting = _FADED.replace("{faded}", f"interval '{faded.total_seconds()} seconds'")
    return make_round("activations", waiting=waiting, tend=_trim)


def _trim(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        return change(_DROP, agent=agent_id, **_fading(None))


def _fading(now: datetime | None) -> dict[str, Any]:
    return {"now": now, "half_life": settings.ARBOR_ACTIVATION_HALF_LIFE.total_seconds()}


def _checked(limit: int) -> int:
    if not 1 <= limit <= MOST_KEPT:
        raise Invalid(f"what is present in mind is read 1 to {MOST_KEPT} at a time, asked for {limit}")
    return limit
