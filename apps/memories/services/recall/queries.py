"""SQL statements of recall: mind images, activations, nearest memories. `scan_queries` has the scan."""

from __future__ import annotations

from apps.memories.services.embedding.queries import QUERY_VECTOR
from apps.memories.services.store.queries import TERM_COUNTS
from arbor.memory.activation import CAP, FLOOR, MAX_ACTIVATED, MAX_ACTIVE, MAX_FOR_CLUSTERS, SPREAD
from arbor.memory.detail_text import HIDDEN_FIELDS, PRACTICE_FIELD
from arbor.memory.neighborhood import HIGHEST_WEIGHT

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

# Parts: the condition of each field of a filter.
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

# Read a row if a memory meets conditions of a filter.
MEMORY_MEETS_FILTER = """
SELECT 1 FROM memories_memory WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = %(memory)s{conditions}
"""

# The most rows that one step deletes.
_MAX_DELETED = 5_000

# The number of related clusters whose names are read with an active cluster.
RELATED_SHOWN = 3

# The most half lives: beyond, PostgreSQL raises an underflow, and the activation is 0 long before.
_MAX_HALF_LIVES = 64

# Part: the activation at a time, as `arbor.memory.activation.level_after` computes it.
_LEVEL = f"""a.level * 0.5 ^ least({_MAX_HALF_LIVES}, greatest(
    0, extract(epoch FROM coalesce(%(now)s::timestamptz, now()) - a.at)::float8 / %(half_life)s
))"""

# Record the recalls of a batch of heartbeats, for each agent by itself, as `arbor.memory.activation.spread` does. Clusters that
# maintenance has locked are not counted, so that no heartbeat waits. Uses are updated before new ones are inserted: most
# recalled memories were recalled before, and a conflict would lock each row before it is written, and log both.
RAISE_ACTIVATIONS = f"""
WITH recalled AS MATERIALIZED (
    SELECT (%(agents)s::uuid[])[r.agent] AS agent_id, r.id, r.level
    FROM unnest(%(numbers)s::int[], %(ids)s::uuid[], %(levels)s::float8[]) AS r(agent, id, level)
), reached AS (
    SELECT agent_id, id, level FROM recalled
    UNION ALL
    SELECT r.agent_id, near.key::uuid, r.level * {SPREAD} * near.value::float8 / {HIGHEST_WEIGHT}
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
    ) reached_cluster ON reached_cluster.cluster_id = c.id AND reached_cluster.agent_id = c.agent_id
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY(ARRAY(
        SELECT cluster_id FROM memories_clustermember WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[])
    )) ORDER BY c.id FOR UPDATE OF c SKIP LOCKED
), counted AS (
    UPDATE memories_cluster c SET activations = activations + 1, activated_at = coalesce(%(now)s::timestamptz, now())
    FROM touched WHERE c.tenant_id = %(tenant)s AND c.id = touched.id AND c.id = ANY(ARRAY(SELECT id FROM touched))
), existing AS MATERIALIZED (
    SELECT m.id FROM recalled r CROSS JOIN LATERAL (
        SELECT id FROM memories_memory WHERE tenant_id = %(tenant)s AND id = r.id AND agent_id = r.agent_id LIMIT 1
    ) m ORDER BY m.id
), used AS (
    UPDATE memories_memoryaccess used SET count = used.count + 1, last_at = coalesce(%(now)s::timestamptz, now())
    FROM existing WHERE used.tenant_id = %(tenant)s AND used.memory_id = existing.id AND used.memory_id = ANY(%(ids)s::uuid[])
    RETURNING used.memory_id
), first_used AS (
    INSERT INTO memories_memoryaccess AS used (tenant_id, memory_id, count, last_at)
    SELECT %(tenant)s, id, 1, coalesce(%(now)s::timestamptz, now()) FROM existing
    WHERE id NOT IN (SELECT memory_id FROM used) ORDER BY id
    ON CONFLICT (tenant_id, memory_id) DO UPDATE SET count = used.count + 1, last_at = EXCLUDED.last_at
)
INSERT INTO memories_activation AS a (tenant_id, memory_id, agent_id, level, at)
SELECT %(tenant)s, id, agent_id, least({CAP}, level), coalesce(%(now)s::timestamptz, now()) FROM ranked
WHERE place <= {MAX_ACTIVATED} ORDER BY id
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET level = least({CAP}, {_LEVEL} + EXCLUDED.level), at = EXCLUDED.at
"""  # noqa: S608 (no external input)

# Part: the present activations of an agent.
_PRESENT = f"""
SELECT memory_id, level FROM (
    SELECT memory_id, {_LEVEL} AS level FROM memories_activation a
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s ORDER BY at DESC, memory_id LIMIT {MAX_ACTIVE}
) latest WHERE level >= {FLOOR} ORDER BY level DESC, memory_id
"""  # noqa: S608

# Read the activated memories of an agent, with their present activations.
ACTIVE_MEMORIES = f"""
SELECT m.id, present.level FROM ({_PRESENT}) present
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = present.memory_id AND m.status = 'active'
ORDER BY present.level DESC, m.id LIMIT %(limit)s
"""  # noqa: S608

# Read an agent's activated clusters, the most activated first; also a part of the statement that reads situations. The values are
# `cluster_values()`, and `agent`.
ACTIVE_CLUSTERS = f"""
SELECT c.id, c.name, c.keywords::json AS keywords, c.emotional_valence, c.emotional_intensity, active.activation,
    active.members, ARRAY(
        SELECT other.name FROM (
            SELECT target_id AS id, strength FROM memories_clusterrelation WHERE tenant_id = %(tenant)s AND source_id = c.id
            UNION ALL
            SELECT source_id, strength FROM memories_clusterrelation WHERE tenant_id = %(tenant)s AND target_id = c.id
        ) r JOIN memories_cluster other ON other.tenant_id = %(tenant)s AND other.id = r.id
        GROUP BY other.id, other.name ORDER BY max(r.strength) DESC, other.id LIMIT {RELATED_SHOWN}
    ) AS related
FROM (
    SELECT m.cluster_id, sum(present.level * m.strength) AS activation, count(*) AS members
    FROM ({_PRESENT} LIMIT {MAX_FOR_CLUSTERS}) present
    JOIN memories_clustermember m ON m.tenant_id = %(tenant)s AND m.memory_id = present.memory_id
    GROUP BY m.cluster_id
) active CROSS JOIN LATERAL (
    SELECT id, name, keywords, emotional_valence, emotional_intensity FROM memories_cluster
    WHERE tenant_id = %(tenant)s AND id = active.cluster_id LIMIT 1
) c
ORDER BY active.activation DESC, c.id LIMIT %(most_clusters)s
"""  # noqa: S608

# Find agents for a job run: those with faded or too many activations.
AGENTS_WITH_FADED = f"""
SELECT agent_id FROM memories_activation WHERE tenant_id = t.id
GROUP BY agent_id HAVING count(*) > {MAX_ACTIVE} OR min(at) < now() - {{faded}}
"""  # noqa: S608

# Delete a bounded number of faded or excess activations whose rows nobody else has locked.
DROP_FADED = f"""
WITH faded AS MATERIALIZED (
    SELECT memory_id FROM memories_activation a
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND ({_LEVEL} < {FLOOR} OR memory_id NOT IN (
        SELECT memory_id FROM memories_activation a WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
        ORDER BY {_LEVEL} DESC, memory_id LIMIT {MAX_ACTIVE}
    ))
    ORDER BY memory_id LIMIT {_MAX_DELETED} FOR UPDATE SKIP LOCKED
)
DELETE FROM memories_activation a USING faded WHERE a.tenant_id = %(tenant)s AND a.memory_id = faded.memory_id
"""  # noqa: S608

# Part: the fields of a memory's detail that prompts show, as text; null if there are none, as with turns of a conversation.
# A procedure always has its outcomes so far.
RECALLED_DETAIL = f"""CASE
    WHEN m.type = 'procedural' THEN (m.detail || jsonb_build_object('{PRACTICE_FIELD}', (
        SELECT jsonb_build_array(p.successes, p.failures) FROM memories_practice p
        WHERE p.tenant_id = %(tenant)s AND p.memory_id = m.id LIMIT 1
    )))::text
    WHEN m.detail <> '{{}}' THEN nullif(m.detail - '{{{",".join(HIDDEN_FIELDS)}}}'::text[], '{{}}')::text
END"""  # noqa: S608 (no external input)

# Read neighborhoods, uses and texts, packed as bytes: a tenth of the work of rows. A memory that was never used has no row of
# uses. LIMIT 1 makes the planner read each row by its key.
MEMORY_STATE = f"""
SELECT (
    SELECT string_agg(
        uuid_send(u.memory_id) || uuid_send(near.key::uuid) || float8send(near.value::float8 / {HIGHEST_WEIGHT}), ''::bytea
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

# Part: minds, packed, with their memories on a condition. There is no row for an agent of a suspended tenant, or a deleted one: its
# cached mind is not used then. Rows restored from another PostgreSQL cluster may have transaction numbers beyond those of this
# cluster; they count as unchanged. LIMIT 1 makes the planner read one row by its key instead of all rows of the tenant.
_READ_MINDS = """
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
        SELECT array_agg(ARRAY[known.term, known.memories]) FROM ({term_counts}) known
    ), packed.*
FROM moment
CROSS JOIN json_to_recordset(%(requests)s::json) AS request (
    agent_id uuid, since bigint, until bigint, running bigint[], terms int[]
)
CROSS JOIN LATERAL (
    SELECT agent_id, revision, embedding_model, embedding_dimension FROM memories_mind
    WHERE tenant_id = %(tenant)s AND agent_id = request.agent_id LIMIT 1
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

_TERM_COUNTS = TERM_COUNTS.format(agent="mind.agent_id", terms="request.terms")

# Read all active memories of minds, packed.
WHOLE_MINDS = _READ_MINDS.format(condition="status = 'active'", term_counts=_TERM_COUNTS)

# Read the changes of minds since a snapshot, packed.
CHANGED_MINDS = _READ_MINDS.format(
    condition="revision >= request.since AND revision < moment.ends"
    " AND (revision >= request.until OR revision = ANY(request.running))",
    term_counts=_TERM_COUNTS,
)

# The number of clusters whose memories are compared, the nearest ones.
_MAX_CLUSTERS = 20

# Compare a query with clusters and all memories. The memories are scanned in the index of the mind alone, as in recall.
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
    ORDER BY center DESC, id LIMIT {_MAX_CLUSTERS}
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

# Read the texts and details of recalled memories; part of every recall.
CONTENTS = f"""
SELECT m.id, m.content, {RECALLED_DETAIL} FROM memories_memory m
WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[])
"""  # noqa: S608 (no external input)

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

# Compare a query with an agent's memories by cosine, as seed 001 defines source 1: similarity 1 - (embedding <=> query), no
# archived or expired memory, the nearest first. The first column is false if the vector could not be compared.
MEMORIES_BY_COSINE = f"""
WITH asked AS MATERIALIZED (SELECT {QUERY_VECTOR} AS vector), nearest AS MATERIALIZED (
    SELECT id, 1 - (embedding <=> (SELECT vector FROM asked)) AS similarity FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active'
        AND (expires_at IS NULL OR expires_at > %(now)s) AND embedding IS NOT NULL
        AND (SELECT vector FROM asked) IS NOT NULL
    ORDER BY embedding <=> (SELECT vector FROM asked), id LIMIT %(limit)s
)
SELECT a.vector IS NOT NULL, m.id, m.content, m.importance, m.created_at, n.similarity
FROM asked a LEFT JOIN nearest n ON true
LEFT JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = n.id
ORDER BY n.similarity DESC NULLS LAST, m.id
"""  # noqa: S608 (no external input)
