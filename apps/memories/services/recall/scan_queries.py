"""The SQL statement that scans a mind, and its parts."""

from __future__ import annotations

from arbor.memory.neighborhood import HIGHEST_WEIGHT
from arbor.memory.recall.fusion import (
    DEVIATIONS,
    MAX_ASSOCIATED_MEMORIES,
    MAX_ASSOCIATION_SOURCES,
    MIN_DEVIATION,
)

# Part: the columns of a candidate, packed.
SCAN_ROW = """m.id, m.session, m.position, m.role, m.type, m.occurred_at,
    uuid_send(m.id) || int4send(m.position) || timestamptz_send(m.occurred_at) || float8send(m.importance)
        || float8send(m.decay_rate) || float8send(m.trust)
        || float8send(coalesce(m.embedding <#> (SELECT vector FROM asked), 'NaN'))
        || float8send(coalesce(m.lexical <#> %(lexical)s::sparsevec, 0)) || boolsend(m.content LIKE '%%?%%')
        || uuid_send(coalesce(m.episode_id, '{none}')) || float8send(m.emotional_valence) AS packed"""

# Part: memories from the neighborhoods of the best-fitting memories, the sources of associations; the fit is that of
# `arbor.memory.recall.fusion`. The statement must define `best`, `background`, `chosen` and `found`.
ASSOCIATIONS = f"""), association_source AS MATERIALIZED (
    SELECT id, fit FROM (
        SELECT id, %(words)s::float8 * -coalesce(word_distance, 0) + %(meaning)s::float8 * CASE WHEN deviation > {MIN_DEVIATION} AND distance IS NOT NULL
            THEN least(1, greatest(0, -(distance + mean) / deviation / {DEVIATIONS})) ELSE 0 END AS fit
        FROM chosen JOIN best USING (id) CROSS JOIN background
    ) fitting WHERE fit > 0 ORDER BY fit DESC, id LIMIT {MAX_ASSOCIATION_SOURCES}
), association AS MATERIALIZED (
    SELECT source.id AS source, source.fit, near.key::uuid AS id, near.value::float8 / {HIGHEST_WEIGHT} AS share
    FROM association_source source JOIN memories_upkeep u ON u.tenant_id = %(tenant)s AND u.agent_id = %(agent)s AND u.memory_id = source.id
    CROSS JOIN LATERAL jsonb_each_text(CASE WHEN jsonb_typeof(u.neighbors) = 'object' THEN u.neighbors END) near
"""  # noqa: S608 (no external input)

# Part: memories of ASSOCIATIONS that are not candidates yet.
ASSOCIATED_MEMORIES = f"""
    SELECT memory.* FROM (
        SELECT id, max(fit * share) AS worth FROM association WHERE id NOT IN (SELECT id FROM found)
        GROUP BY id ORDER BY worth DESC, id
    ) near CROSS JOIN LATERAL (
        SELECT {{row}} FROM memories_memory m
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = near.id AND status = 'active'
            AND (expires_at IS NULL OR expires_at > %(now)s){{conditions}} LIMIT 1
    ) memory ORDER BY near.worth DESC, near.id LIMIT {MAX_ASSOCIATED_MEMORIES}
"""  # noqa: S608

# Part: the links among candidates, packed.
PACKED_LINKS = (
    "(SELECT string_agg(uuid_send(source) || uuid_send(id) || float8send(share), ''::bytea) FROM association)"
)

# Score all memories of a mind by one index-only scan. pgvector's operator returns the negative inner product, so lower values of
# `distance` and `word_distance` are better. `OFFSET 0` prevents PostgreSQL from computing them again at each use. The stretches
# around the seeds of a session do not overlap: each begins where the previous one ends. LIMIT 1 makes the planner read one row by
# its key; it would otherwise read all rows of the tenant.
SCAN = """
WITH asked AS MATERIALIZED (
    SELECT {vector} AS vector
), sample AS MATERIALIZED (
    SELECT embedding <#> (SELECT vector FROM asked) AS distance, lexical <#> %(lexical)s::sparsevec AS word_distance
    FROM {mind}{other_sessions} LIMIT %(sample)s
), admitted AS MATERIALIZED (
    SELECT {share} AS share
), edge AS MATERIALIZED (
    SELECT coalesce(percentile_disc((SELECT share FROM admitted)) WITHIN GROUP (ORDER BY distance), 'infinity') AS distance,
        least(percentile_disc((SELECT share FROM admitted)) WITHIN GROUP (ORDER BY word_distance), 0) AS word_distance
    FROM sample
), scored AS MATERIALIZED (
    SELECT array_agg(ROW (id, distance, word_distance, {timely}, limited)) FILTER {among} AS places,
        count(distance) AS embedded, {others} AS others,
        coalesce(avg(distance), 0) AS mean, coalesce(sum(distance * distance) / nullif(count(distance), 0), 0) AS square
    FROM (
        SELECT id, occurred_at, {limited} AS limited, embedding <#> (SELECT vector FROM asked) AS distance, lexical <#> %(lexical)s::sparsevec AS word_distance
        FROM {mind} OFFSET 0
    ) memory
), background AS MATERIALIZED (
    SELECT embedded, others, -mean AS mean, sqrt(greatest(0, square - mean * mean)) AS deviation FROM scored
), best AS MATERIALIZED (
    SELECT place.* FROM scored, unnest(scored.places) AS place (id uuid, distance float8, word_distance float8, timely bool, limited bool)
), chosen AS (
    {chosen}
), found AS MATERIALIZED (
    SELECT memory.* FROM chosen CROSS JOIN LATERAL (
        SELECT {row} FROM memories_memory m WHERE tenant_id = %(tenant)s AND id = chosen.id LIMIT 1
    ) memory
{associations}), stretch AS (
    SELECT session, position::bigint + {reach} AS until, greatest(
            position::bigint - {reach},
            lag(position::bigint) OVER (PARTITION BY session ORDER BY position) + {reach} + 1
        ) AS since
    FROM found WHERE session <> ''
), candidate AS (
    SELECT * FROM found
    UNION ALL
    SELECT turn.* FROM stretch CROSS JOIN LATERAL (
        SELECT {row} FROM memories_memory m
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND session = stretch.session AND session <> '' AND status = 'active'
            AND position BETWEEN stretch.since AND stretch.until AND (expires_at IS NULL OR expires_at > %(now)s){conditions}
        ORDER BY position, id LIMIT {most_beside}
    ) turn
    UNION ALL
    (SELECT * FROM ({associated_memories}) associated)
)
SELECT string_agg(c.packed || timestamptz_send(coalesce(a.last_at, c.occurred_at))
        || int4send(least(coalesce(a.count, 0)::bigint + coalesce(a.reinforced, 0), 1e9)::int)
        || float8send(coalesce(v.level, 0)) || timestamptz_send(coalesce(v.at, %(now)s)), ''::bytea),
    {packed_links}, array_agg(c.session), array_agg(c.role), array_agg(c.type),
    (SELECT mean FROM background), (SELECT deviation FROM background), (SELECT vector IS NOT NULL FROM asked),
    (SELECT count(*) FROM best WHERE distance <= (SELECT distance FROM edge))
        >= (SELECT least(%(max_seeds)s, embedded) FROM background)
    AND (SELECT count(*) FROM best WHERE NOT limited AND distance <= (SELECT distance FROM edge))
        >= (SELECT least(%(max_seeds)s, others) FROM background)
    AND ((SELECT word_distance FROM edge) = 0 OR (SELECT count(*) FROM best WHERE NOT limited AND word_distance < (SELECT word_distance FROM edge)) >= %(max_seeds)s)
FROM candidate c
LEFT JOIN LATERAL (SELECT last_at, count, reinforced FROM memories_memoryaccess
    WHERE tenant_id = %(tenant)s AND memory_id = c.id LIMIT 1) a ON true
LEFT JOIN LATERAL (SELECT level, at FROM memories_activation
    WHERE tenant_id = %(tenant)s AND memory_id = c.id LIMIT 1) v ON true
"""

# Part: the rows that are scanned.
SCANNED_MIND = """memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active'
        AND (expires_at IS NULL OR expires_at > %(now)s)"""

# Part: the best memories by meaning, and by words; `other` is empty, or the condition for those of other sessions.
NEAREST = (
    """(SELECT id FROM best WHERE {other}distance IS NOT NULL ORDER BY distance, id LIMIT %(max_seeds)s)"""
)
BEST_BY_WORDS = (
    """(SELECT id FROM best WHERE {other}word_distance < 0 ORDER BY word_distance, id LIMIT %(max_seeds)s)"""
)
OTHER = "NOT limited AND "

# Part: the latest memories, where too few match.
RECENT = """(SELECT id FROM (
        SELECT id, occurred_at FROM {mind} ORDER BY occurred_at DESC, id LIMIT %(limit)s
    ) recent)"""

# Parts: the condition for a memory to be of the session whose memories are limited, and to be of another one; the number of the latter
# with a vector.
LIMITED = "session = %(limited)s"
OTHER_SESSIONS = " AND session <> %(limited)s"
COUNT_OF_OTHERS = "count(distance) FILTER (WHERE NOT limited)"

# Parts: the share of the sample that is admitted. With a session limit, enough memories of other sessions must be among the best.
SHARE = "%(share)s::float8"
SHARE_OF_OTHERS = (
    f"(SELECT least(1, {SHARE} * %(documents)s / greatest(count(*), 1)) FROM {SCANNED_MIND}{OTHER_SESSIONS})"  # noqa: S608
)

# Part: the condition for a memory to be fetched as a possible best one: no worse than the limit guessed from the sample (`edge`).
AMONG_THE_BEST = "(WHERE distance <= (SELECT distance FROM edge) OR word_distance < (SELECT word_distance FROM edge){or_timely})"

# Part: the condition for a memory to be of the time span that the query's text names.
TIMELY = "occurred_at BETWEEN %(from)s AND %(to)s"

# Part: the best memories of that time span.
BEST_TIMELY = """(
        SELECT id FROM best, background WHERE {other}timely
        ORDER BY coalesce(word_distance, 0) + %(beside_words)s * coalesce((distance + mean) / nullif(deviation, 0), 0), id
        LIMIT %(span_seeds)s
    )"""
