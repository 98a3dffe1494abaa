"""Statements by hand of recall: the scan of a mind, the reading of mind images, activations."""

from __future__ import annotations

from apps.memories.services.embedding.queries import QUERY_VECTOR
from arbor.memory.activation import CAP, FLOOR, MOST_KEPT, MOST_REACHED, MOST_TELLING, SPREAD
from arbor.memory.detail_text import HIDDEN_FIELDS, PRACTICE_FIELD
from arbor.memory.fusion import DEVIATIONS, LEAST_DEVIATION, MAX_ASSOCIATED_MEMORIES, MAX_ASSOCIATION_SOURCES
from arbor.memory.neighborhood import HIGHEST

_OF_CONCEPT = """id IN (
    SELECT k.memory_id FROM memories_concept named
    JOIN memories_concept c ON c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s
        AND (c.id = named.id OR c.ancestors @> to_jsonb(named.id::text))
    JOIN memories_memoryconcept k ON k.tenant_id = %(tenant)s AND k.concept_id = c.id
    WHERE named.tenant_id = %(tenant)s AND named.agent_id = %(agent)s AND named.{name} = %({value})s
)"""

_OF_CLUSTER = """id IN (
    SELECT member.memory_id FROM memories_cluster c
    JOIN memories_clustermember member ON member.tenant_id = %(tenant)s AND member.cluster_id = c.id
    WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND {condition}
)"""

# Parts: the conditions of a filter by its fields.
FILTER_CONDITIONS = {
    "types": "type = ANY(%(types)s::text[])",
    "since": "occurred_at >= %(since)s",
    "until": "occurred_at < %(until)s",
    "session": "session = %(session)s",
    "without": "session <> %(without)s",
    "without_since": "(session <> %(without)s OR occurred_at < %(without_since)s)",
    "min_importance": "importance >= %(min_importance)s",
    "min_trust": "trust >= %(min_trust)s",
    "episode": "episode_id = %(episode)s",
    "concept": _OF_CONCEPT.format(name="id", value="concept"),
    "concept_key": _OF_CONCEPT.format(name="key", value="concept_key"),
    "cluster": _OF_CLUSTER.format(condition="c.id = %(cluster)s"),
    "cluster_name": _OF_CLUSTER.format(condition="lower(c.name) = lower(%(cluster_name)s)"),
}

# Faded rows that one step drops.
_DROPPED = 5_000

# Related clusters that are named beside an active one.
RELATED_SHOWN = 3

# Beyond this number of half lives PostgreSQL raises an underflow; nothing is left long before.
_LONGEST = 64

# `arbor.memory.activation.level_after`.
_LEVEL = f"""a.level * 0.5 ^ least({_LONGEST}, greatest(
    0, extract(epoch FROM coalesce(%(now)s::timestamptz, now()) - a.at)::float8 / %(half_life)s
))"""

# Note the recalls of a batch of heartbeats in one statement.
# `arbor.memory.activation.spread`, for each agent by itself; clusters that maintenance has in hand go uncounted rather than
# delay a heartbeat.
RAISE_ACTIVATIONS = f"""
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
"""  # noqa: S608 (no external input)

_PRESENT = f"""
SELECT memory_id, level FROM (
    SELECT memory_id, {_LEVEL} AS level FROM memories_activation a
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s ORDER BY at DESC LIMIT {MOST_KEPT}
) latest WHERE level >= {FLOOR} ORDER BY level DESC, memory_id
"""  # noqa: S608

# Read what is present in mind, faded in the database.
ACTIVE_MEMORIES = f"""
SELECT m.id, present.level FROM ({_PRESENT}) present
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = present.memory_id AND m.status = 'active'
ORDER BY present.level DESC, m.id LIMIT %(limit)s
"""  # noqa: S608

# An agent's clusters, the most present first: to be read alone, or within another statement. Its values are
# `cluster_values()`, and `agent`.
ACTIVE_CLUSTERS = f"""
SELECT c.id, c.name, c.keywords::json AS keywords, c.emotional_valence, c.emotional_intensity, theme.activation,
    theme.members, ARRAY(
        SELECT other.name FROM (
            SELECT target_id AS id, strength FROM memories_clusterrelation WHERE tenant_id = %(tenant)s AND source_id = c.id
            UNION ALL
            SELECT source_id, strength FROM memories_clusterrelation WHERE tenant_id = %(tenant)s AND target_id = c.id
        ) r JOIN memories_cluster other ON other.tenant_id = %(tenant)s AND other.id = r.id
        GROUP BY other.id, other.name ORDER BY max(r.strength) DESC, other.id LIMIT {RELATED_SHOWN}
    ) AS related
FROM (
    SELECT m.cluster_id, sum(present.level * m.strength) AS activation, count(*) AS members
    FROM ({_PRESENT} LIMIT {MOST_TELLING}) present
    JOIN memories_clustermember m ON m.tenant_id = %(tenant)s AND m.memory_id = present.memory_id
    GROUP BY m.cluster_id
) theme JOIN memories_cluster c ON c.tenant_id = %(tenant)s AND c.id = theme.cluster_id
ORDER BY theme.activation DESC, c.id LIMIT %(themes)s
"""  # noqa: S608

# Find agents for a job run.
AGENTS_WITH_FADED = f"""
SELECT agent_id FROM memories_activation WHERE tenant_id = t.id
GROUP BY agent_id HAVING count(*) > {MOST_KEPT} OR min(at) < now() - {{faded}}
"""  # noqa: S608

# Delete a bounded number of rows that nobody else has locked.
DROP_FADED = f"""
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

# Part: what prompts show of a memory's detail, as text; null if they show nothing of it, as with turns of a conversation.
# A procedure always has one: its outcomes so far.
RECALLED_DETAIL = f"""CASE
    WHEN m.type = 'procedural' THEN (m.detail || jsonb_build_object('{PRACTICE_FIELD}', (
        SELECT jsonb_build_array(p.successes, p.failures) FROM memories_practice p
        WHERE p.tenant_id = %(tenant)s AND p.memory_id = m.id LIMIT 1
    )))::text
    WHEN m.detail <> '{{}}' THEN nullif(m.detail - '{{{",".join(HIDDEN_FIELDS)}}}'::text[], '{{}}')::text
END"""  # noqa: S608 (no external input)

# Read uses, neighborhoods and texts packed as bytes: a tenth of the work of rows.
# What was never used has no row. LIMIT 1: by key.
MEMORY_STATE = f"""
SELECT (
    SELECT string_agg(
        uuid_send(u.memory_id) || uuid_send(near.key::uuid) || float8send(near.value::float8 / {HIGHEST}), ''::bytea
    )
    FROM unnest(%(sources)s::uuid[]) AS source (id)
    CROSS JOIN LATERAL (SELECT memory_id, neighbors FROM memories_upkeep
        WHERE tenant_id = %(tenant)s AND memory_id = source.id LIMIT 1) u
    CROSS JOIN LATERAL jsonb_each_text(CASE WHEN jsonb_typeof(u.neighbors) = 'object' THEN u.neighbors END) near
), (
    SELECT string_agg(
        int4send(memory.place::int) || timestamptz_send(coalesce(a.last_at, '-infinity'))
            || int4send(least(coalesce(a.count, 0)::bigint + coalesce(a.reinforced, 0), 1e9)::int)
            || float8send(coalesce(v.level, 0)) || timestamptz_send(coalesce(v.at, 'epoch')), ''::bytea
    )
    FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS memory (id, place)
    LEFT JOIN LATERAL (SELECT memory_id, last_at, count, reinforced FROM memories_memoryaccess
        WHERE tenant_id = %(tenant)s AND memory_id = memory.id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT memory_id, level, at FROM memories_activation
        WHERE tenant_id = %(tenant)s AND memory_id = memory.id LIMIT 1) v ON true
    WHERE a.memory_id IS NOT NULL OR v.memory_id IS NOT NULL
), texts.contents, texts.details
FROM (
    SELECT array_agg(text.content ORDER BY memory.place) AS contents,
        array_agg(text.detail ORDER BY memory.place) AS details
    FROM unnest(%(ids)s::uuid[]) WITH ORDINALITY AS memory (id, place)
    LEFT JOIN LATERAL (SELECT m.content, {RECALLED_DETAIL} AS detail FROM memories_memory m
        WHERE m.tenant_id = %(tenant)s AND m.id = memory.id LIMIT 1) text ON true
    WHERE %(with_contents)s
) texts
"""  # noqa: S608 (no external input)

# A suspended tenant, or a deleted agent, has no row: the cached mind is not used then. Rows restored from another PostgreSQL
# cluster may have transaction numbers beyond those of this cluster; they count as unchanged. LIMIT 1 makes the planner read one
# row by its key instead of all rows of the tenant.
_READ = """
WITH moment AS MATERIALIZED (
    SELECT pg_current_snapshot()::text AS snapshot, pg_current_xact_id_if_assigned()::text::bigint AS own,
        greatest(
            pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_current_xact_id_if_assigned()::text::bigint + 1
        ) AS ends
)
SELECT mind.agent_id, CASE WHEN mind.revision < moment.ends THEN mind.revision ELSE 0 END,
    mind.embedding_model, mind.embedding_dimension, moment.snapshot, moment.own,
    (
        SELECT id FROM memories_memory
        WHERE tenant_id = %(tenant)s AND agent_id = mind.agent_id AND revision = moment.own LIMIT 1
    ) IS NOT NULL, (
        SELECT array_agg(ARRAY[term, memories]) FROM memories_term
        WHERE tenant_id = %(tenant)s AND agent_id = mind.agent_id AND term = ANY(asked.terms)
    ), packed.*
FROM moment
CROSS JOIN json_to_recordset(%(asked)s::json) AS asked (
    agent_id uuid, since bigint, until bigint, running bigint[], terms int[]
)
CROSS JOIN LATERAL (
    SELECT agent_id, revision, embedding_model, embedding_dimension FROM memories_mind
    WHERE tenant_id = %(tenant)s AND agent_id = asked.agent_id LIMIT 1
) mind
JOIN tenants_tenant tenant ON tenant.id = %(tenant)s AND tenant.status = 'active'
CROSS JOIN LATERAL (
    SELECT string_agg(
            uuid_send(id) || boolsend(status = 'active') || int4send(position)
            || timestamptz_send(occurred_at) || timestamptz_send(coalesce(expires_at, 'infinity'))
            || float8send(importance) || float8send(decay_rate) || float8send(trust) || float8send(emotional_valence)
            || boolsend(content LIKE '%%?%%') || uuid_send(coalesce(episode_id, '00000000-0000-0000-0000-000000000000'))
            || int4send(coalesce(octet_length(vector), 0)) || int4send(coalesce(octet_length(words), 0)), ''::bytea
        ),
        string_agg(vector, ''::bytea), string_agg(words, ''::bytea),
        array_agg(session), array_agg(role), array_agg(type)
    FROM (
        SELECT id, status, position, occurred_at, expires_at, importance, decay_rate, trust, emotional_valence,
            content, episode_id, session, role, type, halfvec_send(embedding) AS vector, sparsevec_send(lexical) AS words
        FROM memories_memory
        WHERE tenant_id = %(tenant)s AND agent_id = mind.agent_id AND {condition}
        OFFSET 0
    ) memory
) packed
"""

# Read all active memories of minds, packed.
WHOLE_MINDS = _READ.format(condition="status = 'active'")

# Read what has changed since a snapshot, packed.
CHANGED_MINDS = _READ.format(
    condition="revision >= asked.since AND revision < moment.ends"
    " AND (revision >= asked.until OR revision = ANY(asked.running))"
)

# Clusters that are looked at: the nearest.
_CLUSTERS_LOOKED_AT = 20

# Compare a query with clusters and all memories.
# The memories are scanned in the index of the mind alone, as in recall.
RESONANCES = f"""
WITH asked AS MATERIALIZED (SELECT {QUERY_VECTOR} AS vector), scan AS MATERIALIZED (
    SELECT id, -(embedding <#> (SELECT vector FROM asked)) AS cosine FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active'
        AND (expires_at IS NULL OR expires_at > now())
        AND (%(without)s::text IS NULL OR session <> %(without)s)
), near AS MATERIALIZED (
    SELECT id, name, keywords, -(centroid <#> (SELECT vector FROM asked)) AS center FROM memories_cluster
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND vector_dims(centroid) = %(vector_dimension)s
        AND (SELECT vector FROM asked) IS NOT NULL
    ORDER BY center DESC, id LIMIT {_CLUSTERS_LOOKED_AT}
), nearest AS (
    SELECT own.cluster_id, max(scan.cosine) AS cosine FROM near
    JOIN memories_clustermember own ON own.tenant_id = %(tenant)s AND own.cluster_id = near.id
    JOIN scan ON scan.id = own.memory_id GROUP BY own.cluster_id
), background AS (
    SELECT coalesce(avg(cosine), 0) AS mean, coalesce(stddev_pop(cosine), 0) AS deviation, max(cosine) AS best
    FROM scan
)
SELECT near.id, near.name, near.keywords::json, near.center, nearest.cosine, background.mean, background.deviation,
    background.best
FROM background, near JOIN nearest ON nearest.cluster_id = near.id WHERE nearest.cosine IS NOT NULL
"""  # noqa: S608 (no external input)

# Read the texts and details of what was recalled; part of every recall.
CONTENTS = f"""
SELECT m.id, m.content, {RECALLED_DETAIL} FROM memories_memory m
WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[])
"""  # noqa: S608 (no external input)

# Part: the columns of a candidate, packed.
SCAN_ROW = """m.id, m.session, m.position, m.role, m.type, m.occurred_at,
    uuid_send(m.id) || int4send(m.position) || timestamptz_send(m.occurred_at) || float8send(m.importance)
        || float8send(m.decay_rate) || float8send(m.trust)
        || float8send(coalesce(m.embedding <#> (SELECT vector FROM asked), 'NaN'))
        || float8send(coalesce(m.lexical <#> %(lexical)s::sparsevec, 0)) || boolsend(m.content LIKE '%%?%%')
        || uuid_send(coalesce(m.episode_id, '{none}')) || float8send(m.emotional_valence) AS packed"""

# Part: memories from the neighborhoods of the best-fitting memories, the sources of associations; the fit is that of `arbor.memory.fusion.score`.
# The statement must define `best`, `background`, `chosen` and `found`.
ASSOCIATIONS = f"""), association_source AS MATERIALIZED (
    SELECT id, fit FROM (
        SELECT id, %(words)s::float8 * -coalesce(unsaid, 0) + %(meaning)s::float8 * CASE WHEN deviation > {LEAST_DEVIATION} AND away IS NOT NULL
            THEN least(1, greatest(0, -(away + mean) / deviation / {DEVIATIONS})) ELSE 0 END AS fit
        FROM chosen JOIN best USING (id) CROSS JOIN background
    ) fitting WHERE fit > 0 ORDER BY fit DESC, id LIMIT {MAX_ASSOCIATION_SOURCES}
), association AS MATERIALIZED (
    SELECT source.id AS source, source.fit, near.key::uuid AS id, near.value::float8 / {HIGHEST} AS share
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

# Score all memories of a mind by one index-only scan.
# pgvector's operator returns the negative inner product, so lower values of `away` and `unsaid` are better. `OFFSET 0` prevents
# that they are computed again at each use. The stretches around the seeds of a session do not overlap: each begins where the
# previous one ends. LIMIT 1 makes the planner read one row by its key; it would otherwise read all rows of the tenant.
SCAN = """
WITH asked AS MATERIALIZED (
    SELECT {vector} AS vector
), sample AS MATERIALIZED (
    SELECT embedding <#> (SELECT vector FROM asked) AS away, lexical <#> %(lexical)s::sparsevec AS unsaid
    FROM {mind} LIMIT %(sample)s
), edge AS MATERIALIZED (
    SELECT coalesce(percentile_disc(%(share)s::float8) WITHIN GROUP (ORDER BY away), 'infinity') AS away,
        least(percentile_disc(%(share)s::float8) WITHIN GROUP (ORDER BY unsaid), 0) AS unsaid
    FROM sample
), scored AS MATERIALIZED (
    SELECT array_agg(ROW (id, away, unsaid, {timely})) FILTER {among} AS places,
        count(away) AS embedded, coalesce(avg(away), 0) AS mean, coalesce(sum(away * away) / nullif(count(away), 0), 0) AS square
    FROM (
        SELECT id, occurred_at, embedding <#> (SELECT vector FROM asked) AS away, lexical <#> %(lexical)s::sparsevec AS unsaid
        FROM {mind} OFFSET 0
    ) memory
), background AS MATERIALIZED (
    SELECT embedded, -mean AS mean, sqrt(greatest(0, square - mean * mean)) AS deviation FROM scored
), best AS MATERIALIZED (
    SELECT place.* FROM scored, unnest(scored.places) AS place (id uuid, away float8, unsaid float8, timely bool)
), chosen AS (
    (SELECT id FROM best WHERE away IS NOT NULL ORDER BY away, id LIMIT %(max_seeds)s)
    UNION (SELECT id FROM best WHERE unsaid < 0 ORDER BY unsaid, id LIMIT %(max_seeds)s)
    {or_timely}
    {or_recent}
), found AS MATERIALIZED (
    SELECT {row} FROM chosen JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = chosen.id
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
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND session = stretch.session AND status = 'active'
            AND position BETWEEN stretch.since AND stretch.until AND (expires_at IS NULL OR expires_at > %(now)s){conditions}
        ORDER BY position LIMIT {most_beside}
    ) turn
    UNION ALL
    (SELECT * FROM ({associated_memories}) associated)
)
SELECT string_agg(c.packed || timestamptz_send(coalesce(a.last_at, c.occurred_at))
        || int4send(least(coalesce(a.count, 0)::bigint + coalesce(a.reinforced, 0), 1e9)::int)
        || float8send(coalesce(v.level, 0)) || timestamptz_send(coalesce(v.at, %(now)s)), ''::bytea),
    {packed_links}, array_agg(c.session), array_agg(c.role), array_agg(c.type),
    (SELECT mean FROM background), (SELECT deviation FROM background), (SELECT vector IS NOT NULL FROM asked),
    (SELECT count(*) FROM best WHERE away <= (SELECT away FROM edge))
        >= (SELECT least(%(max_seeds)s, embedded) FROM background)
    AND ((SELECT unsaid FROM edge) = 0 OR (SELECT count(*) FROM best WHERE unsaid < (SELECT unsaid FROM edge)) >= %(max_seeds)s)
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

# Part: what happened last, where too little fits.
OR_RECENT = """UNION (SELECT id FROM (
        SELECT id, occurred_at FROM {mind} ORDER BY occurred_at DESC, id LIMIT %(limit)s
    ) recent)"""

# Part: the guess of what can be among the best.
AMONG_THE_BEST = "(WHERE away <= (SELECT away FROM edge) OR unsaid < (SELECT unsaid FROM edge){or_timely})"

# Part: what happened in the time that is spoken of.
TIMELY = "occurred_at BETWEEN %(from)s AND %(to)s"

# Part: the best of that time.
OR_TIMELY = """UNION (
        SELECT id FROM best, background WHERE timely
        ORDER BY coalesce(unsaid, 0) + %(beside_words)s * coalesce((away + mean) / nullif(deviation, 0), 0), id
        LIMIT %(kept_by_time)s
    )"""

# Compare a query with all memories. As in recall, the index of the mind is scanned without the table, unless conditions need
# other columns. The first column is false if the vector could not be compared; there is a row for it even without a result.
NEAREST_MEMORIES = f"""
WITH asked AS MATERIALIZED (SELECT {QUERY_VECTOR} AS vector), nearest AS MATERIALIZED (
    SELECT id, -(embedding <#> (SELECT vector FROM asked)) AS similarity FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active'
        AND (expires_at IS NULL OR expires_at > now()) AND embedding IS NOT NULL
        AND (SELECT vector FROM asked) IS NOT NULL{{conditions}}
    ORDER BY embedding <#> (SELECT vector FROM asked), id LIMIT %(limit)s
)
SELECT a.vector IS NOT NULL, m.id, m.type, m.content, m.role, m.session, m.occurred_at, n.similarity
FROM asked a LEFT JOIN nearest n ON true
LEFT JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = n.id
ORDER BY n.similarity DESC NULLS LAST, m.id
"""  # noqa: S608 (no external input)
