"""What is present in an agent's mind: raised where the agent itself recalls, and read for its next heartbeat.

The table is a cache and unlogged: after a crash of the database it is empty, and fills again as the agent recalls.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.memories.services.rounds import Round, make_round
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
#: Beyond so many half lives PostgreSQL calls the power an underflow; nothing is left long before.
_LONGEST = 64

# `arbor.memory.activation.level_after`.
_LEVEL = f"""a.level * 0.5 ^ least({_LONGEST}, greatest(
    0, extract(epoch FROM coalesce(%(now)s::timestamptz, now()) - a.at)::float8 / %(half_life)s
))"""
# `arbor.memory.activation.spread`; clusters that maintenance has in hand go uncounted rather than hold up a heartbeat.
_NOTE = f"""
WITH recalled AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(levels)s::float8[]) AS recalled (id, level)
), reached AS (
    SELECT id, level FROM recalled
    UNION ALL
    SELECT near.key::uuid, r.level * {SPREAD} * near.value::float8 / {HIGHEST}
    FROM recalled r
    JOIN memories_upkeep u ON u.tenant_id = %(tenant)s AND u.agent_id = %(agent)s AND u.memory_id = r.id
    CROSS JOIN LATERAL jsonb_each_text(u.neighbors) near
), gained AS (
    SELECT m.id, least({CAP}, sum(r.level)) AS level FROM reached r
    JOIN memories_memory m
        ON m.tenant_id = %(tenant)s AND m.id = r.id AND m.agent_id = %(agent)s AND m.status = 'active'
    GROUP BY m.id HAVING sum(r.level) >= {FLOOR} ORDER BY sum(r.level) DESC, m.id LIMIT {MOST_REACHED}
), touched AS (
    SELECT id FROM memories_cluster WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id IN (
        SELECT cluster_id FROM memories_clustermember
        WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[])
    ) ORDER BY id FOR UPDATE SKIP LOCKED
), counted AS (
    UPDATE memories_cluster c SET activations = activations + 1, activated_at = coalesce(%(now)s::timestamptz, now())
    FROM touched WHERE c.tenant_id = %(tenant)s AND c.id = touched.id
), used AS (
    INSERT INTO memories_memoryaccess AS used (tenant_id, memory_id, count, last_at)
    SELECT tenant_id, id, 1, coalesce(%(now)s::timestamptz, now()) FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = ANY(%(ids)s::uuid[]) ORDER BY id
    ON CONFLICT (tenant_id, memory_id) DO UPDATE SET count = used.count + 1, last_at = EXCLUDED.last_at
)
INSERT INTO memories_activation AS a (tenant_id, memory_id, agent_id, level, at)
SELECT %(tenant)s, id, %(agent)s, level, coalesce(%(now)s::timestamptz, now()) FROM gained ORDER BY id
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
#: An agent's themes, the most present first: to be read alone, or within another statement. Its values are
#: `theme_values()`, and `agent`.
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
    """Note what the agent itself has recalled, by id with its score: it comes to mind, with what is near to it.

    The memories count as used, and their clusters one activation each. Returns how many memories are in mind by it. In
    the open transaction, one statement; rows are locked in the order of their ids. Ids that are not this agent's are
    ignored; raises Invalid for a score that is not finite.
    """
    if not recalled:
        return 0
    levels = sources(recalled)
    return change(
        _NOTE,
        agent=agent_id,
        ids=list(levels),
        levels=list(levels.values()),
        **_fading(now),
    )


def note_recalls(recalled: Mapping[UUID, Mapping[UUID, float]], *, now: datetime | None = None) -> None:
    """Record what several agents have recalled: for each agent, its memories by id with their scores."""
    for agent_id, scores in recalled.items():
        note_recall(agent_id=agent_id, recalled=scores, now=now)


def activated_memories(*, agent_id: UUID, limit: int = 20, now: datetime | None = None) -> list[ActiveMemory]:
    """Return what is present in the agent's mind, the most present first. One statement; changes nothing."""
    rows = fetch(_MEMORIES, agent=agent_id, limit=_checked(limit), **_fading(now))
    return [ActiveMemory(id=each, level=level) for each, level in rows]


def activated_clusters(
    *, agent_id: UUID, limit: int = THEMES_SHOWN, now: datetime | None = None
) -> list[ActiveCluster]:
    """Return the themes that the agent's mind is on, the most present first. One statement; changes nothing."""
    values = {**theme_values(now), "themes": _checked(limit)}
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


def theme_values(now: datetime | None = None) -> dict[str, Any]:
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
