"""Handwritten statements of the maintenance jobs: find waiting agents across tenants, and count up to a bound."""

from __future__ import annotations

from apps.memories.services.embedding.queries import QUERY_VECTOR

# Find agents for a job run, across all tenants. An episode dated in the future, by a clock that ran ahead, stays open until
# then.
AGENTS_TO_CLOSE_EPISODES = """
SELECT DISTINCT agent_id FROM memories_episode
WHERE tenant_id = t.id AND ended_at IS NULL AND last_at < now() - {gap}
"""

# Score all episodes by words and vectors in the database.
# A summary whose vector has another dimension than the query's waits for its new vector; it is scored by words only.
SCAN_EPISODES = """
WITH asked AS MATERIALIZED (SELECT {vector} AS vector), mine AS MATERIALIZED (
    SELECT e.id, e.started_at, e.last_at, e.summary <> '' AS summed, coalesce(-(e.lexical <#> %(lexical)s::sparsevec), 0) AS words,
        CASE WHEN vector_dims(e.embedding) = %(vector_dimension)s THEN -(e.embedding <#> asked.vector) END AS similarity
    FROM memories_episode e, asked WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s
), looked_into AS (
    SELECT e.id, best.words, best.similarity
    FROM asked, (SELECT id FROM mine WHERE NOT summed ORDER BY last_at DESC LIMIT %(looked_into)s) e
    CROSS JOIN LATERAL (
        SELECT max(-(lexical <#> %(lexical)s::sparsevec)) AS words, max(-(embedding <#> asked.vector)) AS similarity
        FROM memories_memory WHERE tenant_id = %(tenant)s AND episode_id = e.id AND status = 'active'
            AND (expires_at IS NULL OR expires_at > %(now)s)
    ) best
)
SELECT mine.id, coalesce(l.words, mine.words), coalesce(l.similarity, mine.similarity), mine.started_at, mine.last_at
FROM mine LEFT JOIN looked_into l ON l.id = mine.id
""".replace("{vector}", QUERY_VECTOR)

# Count up to a bound, each along a partial index of the waiting rows.
COUNT_BY_AGENT = """
SELECT kind, coalesce(sum(waiting), 0), coalesce(max(waiting), 0) FROM (
    SELECT 'stale_neighborhoods' AS kind, count(*) AS waiting FROM (
        SELECT agent_id FROM memories_upkeep WHERE stale LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unclustered', count(*) FROM (
        SELECT agent_id FROM memories_upkeep WHERE unclustered LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unextracted', count(*) FROM (
        SELECT agent_id FROM memories_upkeep WHERE unextracted LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unweighed', count(*) FROM (
        SELECT agent_id FROM memories_upkeep WHERE unweighed LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'stale_clusters', count(*) FROM (
        SELECT agent_id FROM memories_cluster WHERE stale LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unsummarized_episodes', count(*) FROM (
        SELECT agent_id FROM memories_episode WHERE ended_at IS NOT NULL AND summarized_at IS NULL LIMIT %(counted)s
    ) w GROUP BY agent_id
) waiting GROUP BY kind
"""

# Count overdue rows, and find the oldest: it is the first entry of each tenant's part of the index.
COUNT_BY_AGE = """
SELECT 'unembedded', (SELECT count(*) FROM (
        SELECT FROM memories_memory WHERE embedding IS NULL AND status = 'active' AND embedding_model = ''
        LIMIT %(counted)s) w),
    (SELECT min(w.at) FROM tenants_tenant t CROSS JOIN LATERAL (
        SELECT created_at AS at FROM memories_memory
        WHERE tenant_id = t.id AND embedding IS NULL AND status = 'active' AND embedding_model = ''
        ORDER BY created_at LIMIT 1) w), now()
UNION ALL
SELECT 'expired', (SELECT count(*) FROM (
        SELECT FROM memories_memory WHERE expires_at <= now() AND status = 'active' LIMIT %(counted)s) w),
    (SELECT min(w.at) FROM tenants_tenant t CROSS JOIN LATERAL (
        SELECT expires_at AS at FROM memories_memory
        WHERE tenant_id = t.id AND expires_at <= now() AND status = 'active' ORDER BY expires_at LIMIT 1) w), now()
UNION ALL
SELECT 'buffer_expired', (SELECT count(*) FROM (
        SELECT FROM memories_bufferitem WHERE expires_at <= now() LIMIT %(counted)s) w),
    (SELECT min(w.at) FROM tenants_tenant t CROSS JOIN LATERAL (
        SELECT expires_at AS at FROM memories_bufferitem
        WHERE tenant_id = t.id AND expires_at <= now() ORDER BY expires_at LIMIT 1) w), now()
UNION ALL
SELECT 'untended', count(*), min(tended) + interval '1 day', now() FROM (
    SELECT least(
        coalesce(forgot_at, created_at), coalesce(cleaned_at, created_at),
        -- An empty counted_at also requests a count at once, for a mind that has just grown.
        coalesce(counted_at, greatest(forgot_at, cleaned_at, created_at))
    ) AS tended FROM memories_mind
) minds WHERE tended < now() - interval '1 day'
"""

# Count faults of all tenants, up to a bound.
COUNT_FAULTS = """
SELECT (SELECT count(*) FROM (
        SELECT FROM memories_memory WHERE embedding IS NULL AND status = 'active' AND embedding_model <> ''
        LIMIT %(counted)s) w),
    (SELECT count(*) FROM (
        SELECT FROM calls_externalcall
        WHERE errand_status = 'failed' AND purpose <> 'chat' LIMIT %(counted)s) w),
    (SELECT count(*) FROM memories_mind
        WHERE %(model)s <> '' AND (embedding_model, embedding_dimension) <> (%(model)s, %(dimension)s)),
    (SELECT count(*) FROM memories_embedderfault)
"""

# Find agents for a job run by a loose index scan, so that the number of waiting memories does not matter.
AGENTS_WITH_FLAG = """
    WITH RECURSIVE found AS (
        (SELECT agent_id FROM memories_upkeep WHERE tenant_id = t.id AND {flag} ORDER BY agent_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT agent_id FROM memories_upkeep
            WHERE tenant_id = t.id AND {flag} AND agent_id > found.agent_id ORDER BY agent_id LIMIT 1
        ) FROM found WHERE found.agent_id IS NOT NULL
    )
    SELECT agent_id FROM found WHERE agent_id IS NOT NULL
"""

# Read memories with a flag. By key, one at a time: after a bulk insert, the planner lacks the statistics for a good join.
WAITING_MEMORIES = """
SELECT m.* FROM (
    SELECT memory_id FROM memories_upkeep
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND {flag} AND memory_id <> ALL(%(without)s::uuid[])
    ORDER BY memory_id OFFSET 0
) u CROSS JOIN LATERAL (
    SELECT id, left(content, %(longest)s), role, type, occurred_at FROM memories_memory
    WHERE tenant_id = %(tenant)s AND id = u.memory_id AND status = 'active' LIMIT 1
) m LIMIT %(limit)s
"""

# Find the next agents of all tenants, a few of each. In random order, as an order by ids would always begin with the oldest
# tenants.
WAITING_AGENTS = """
WITH tenants AS MATERIALIZED (SELECT id FROM tenants_tenant ORDER BY random())
SELECT t.id, waiting.agent_id FROM tenants t CROSS JOIN LATERAL (
    SELECT w.agent_id FROM ({waiting}) w WHERE w.agent_id <> ALL(%(passed)s::uuid[]) LIMIT %(per_tenant)s
) waiting LIMIT %(found)s
"""

# Find agents for a job run, across all tenants. An episode closed in the future, by a clock that ran ahead, does not wait.
AGENTS_TO_SUMMARIZE = """
SELECT DISTINCT agent_id FROM memories_episode
WHERE tenant_id = t.id AND ended_at IS NOT NULL AND summarized_at IS NULL AND failures < {tries}
    AND ended_at NOT BETWEEN now() - {settles} AND now() + {settles}
"""

# Read a sample of the memories of each episode.
EPISODE_TEXTS = """
SELECT e.id, m.* FROM memories_episode e CROSS JOIN LATERAL (
    SELECT left(content, %(longest)s), role, type, occurred_at FROM memories_memory
    WHERE tenant_id = %(tenant)s AND episode_id = e.id AND status = 'active'
        AND (expires_at IS NULL OR expires_at > now()) AND sequence %% (e.size / %(read)s + 1) = 0
    ORDER BY sequence, id LIMIT %(read)s
) m WHERE e.tenant_id = %(tenant)s AND e.id = ANY(%(ids)s::uuid[])
"""

# Write summaries with their vectors by one statement, where the episode has not changed.
STORE_SUMMARIES = """
UPDATE memories_episode e SET summary = r.summary, summarized_by = r.by, summarized_at = now(), lexical = r.lexical,
    embedding = r.embedding, embedding_model = r.embedding_model, failure = ''
FROM json_to_recordset(%(rows)s::json) AS r(
    id uuid, size int, summary text, by text, lexical sparsevec, embedding halfvec, embedding_model text
)
WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND e.id = r.id AND e.summarized_at IS NULL
    AND e.ended_at IS NOT NULL AND e.size = r.size
"""
