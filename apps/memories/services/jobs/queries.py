"""SQL statements of the maintenance jobs, and of the recall of episodes."""

from __future__ import annotations

from apps.memories.services.embedding.missing_vectors import REFUSED_BY_EMBEDDER_SQL, WAITS_FOR_VECTOR_SQL
from apps.memories.services.embedding.queries import QUERY_VECTOR

# Find agents with an open episode whose last memory is older than the gap between episodes. An episode dated in the future, by
# a clock that ran ahead, stays open until that date.
AGENTS_TO_CLOSE_EPISODES = """
SELECT DISTINCT agent_id FROM memories_episode
WHERE tenant_id = t.id AND ended_at IS NULL AND last_at < now() - {gap} AND started_at < now() - {gap}
"""

# Score all episodes by words and vectors: by their summary or, for the latest episodes without one, by their best memories.
# While its vector has another dimension than the query's, a summary is scored by words alone.
SCAN_EPISODES = """
WITH asked AS MATERIALIZED (SELECT {vector} AS vector), episode AS MATERIALIZED (
    SELECT e.id, e.started_at, e.last_at, e.summary <> '' AS summarized, coalesce(-(e.lexical <#> %(lexical)s::sparsevec), 0) AS words,
        CASE WHEN vector_dims(e.embedding) = %(vector_dimension)s THEN -(e.embedding <#> asked.vector) END AS similarity
    FROM memories_episode e, asked WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s
), scored_by_memories AS (
    SELECT e.id, best.words, best.similarity
    FROM asked, (SELECT id FROM episode WHERE NOT summarized ORDER BY last_at DESC, id LIMIT %(by_memories)s) e
    CROSS JOIN LATERAL (
        SELECT max(-(lexical <#> %(lexical)s::sparsevec)) AS words, max(-(embedding <#> asked.vector)) AS similarity
        FROM memories_memory WHERE tenant_id = %(tenant)s AND episode_id = e.id AND status = 'active'
            AND (expires_at IS NULL OR expires_at > %(now)s)
    ) best
)
SELECT episode.id, coalesce(s.words, episode.words), coalesce(s.similarity, episode.similarity), episode.started_at, episode.last_at
FROM episode LEFT JOIN scored_by_memories s ON s.id = episode.id
""".replace("{vector}", QUERY_VECTOR)

# Part: the tenant of a row `w` is active. Agents of suspended tenants get no model calls, so their rows wait, which is no fault.
_OF_ACTIVE = "JOIN tenants_tenant t ON t.id = w.tenant_id AND t.status = 'active'"

# Count the rows that wait for each kind of maintenance: of all agents, and the most of one agent. Each count uses a partial
# index of the waiting rows and stops at a bound. Memories that their embedder refuses wait for no cluster.
COUNT_BY_AGENT = f"""
SELECT kind, coalesce(sum(waiting), 0), coalesce(max(waiting), 0) FROM (
    SELECT 'stale_neighborhoods' AS kind, count(*) AS waiting FROM (
        SELECT agent_id FROM memories_upkeep WHERE stale LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unclustered', count(*) FROM (
        SELECT agent_id FROM memories_upkeep w WHERE unclustered AND NOT EXISTS (
            SELECT FROM memories_memory m WHERE m.tenant_id = w.tenant_id AND m.id = w.memory_id
                AND m.status = 'active' AND {REFUSED_BY_EMBEDDER_SQL}
        ) LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unextracted', count(*) FROM (
        SELECT agent_id FROM memories_upkeep w {_OF_ACTIVE} WHERE unextracted LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unweighed', count(*) FROM (
        SELECT agent_id FROM memories_upkeep w {_OF_ACTIVE} WHERE unweighed LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'stale_clusters', count(*) FROM (
        SELECT agent_id FROM memories_cluster WHERE stale LIMIT %(counted)s) w GROUP BY agent_id
    UNION ALL SELECT 'unsummarized_episodes', count(*) FROM (
        SELECT agent_id FROM memories_episode w {_OF_ACTIVE}
        WHERE ended_at IS NOT NULL AND summarized_at IS NULL LIMIT %(counted)s
    ) w GROUP BY agent_id
) waiting GROUP BY kind
"""  # noqa: S608 (no external input)

# Count overdue memories and buffer items up to a bound, and find the oldest of each: the first entry of each tenant's part of the
# index. Minds, one for each agent, are all read. Memories of suspended tenants are not embedded.
COUNT_BY_AGE = f"""
SELECT 'unembedded', (SELECT count(*) FROM (
        SELECT FROM memories_memory m JOIN tenants_tenant t ON t.id = m.tenant_id AND t.status = 'active'
        WHERE m.status = 'active' AND {WAITS_FOR_VECTOR_SQL}
        LIMIT %(counted)s) w),
    (SELECT min(w.at) FROM tenants_tenant t CROSS JOIN LATERAL (
        SELECT created_at AS at FROM memories_memory
        WHERE tenant_id = t.id AND status = 'active' AND {WAITS_FOR_VECTOR_SQL}
        ORDER BY created_at LIMIT 1) w WHERE t.status = 'active'), now()
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
SELECT 'overdue_forgetting', count(*), min(checked_at) + interval '1 day', now() FROM (
    SELECT least(
        coalesce(forgot_at, created_at), coalesce(cleaned_at, created_at),
        -- counted_at is also cleared when a mind has just grown, to request a count at once: such a mind is not overdue.
        coalesce(counted_at, greatest(forgot_at, cleaned_at, created_at))
    ) AS checked_at FROM memories_mind
) minds WHERE checked_at < now() - interval '1 day'
"""  # noqa: S608 (no external input)

# Count the faults of all tenants: memories that could not be embedded and failed maintenance calls, each up to a bound, then
# minds whose vectors are of another model than the installation's, and faults of the embedder.
COUNT_FAULTS = f"""
SELECT (SELECT count(*) FROM (
        SELECT FROM memories_memory WHERE status = 'active' AND {REFUSED_BY_EMBEDDER_SQL}
        LIMIT %(counted)s) w),
    (SELECT count(*) FROM (
        SELECT FROM calls_externalcall
        WHERE errand_status = 'failed' AND purpose NOT IN ('chat', 'workflow') LIMIT %(counted)s) w),
    (SELECT count(*) FROM memories_mind
        WHERE %(model)s <> '' AND (embedding_model, embedding_dimension) <> (%(model)s, %(dimension)s)),
    (SELECT count(*) FROM memories_embedderfault)
"""  # noqa: S608 (no external input)

# Find agents with a flagged memory by a loose index scan, so that the number of flagged memories does not matter.
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

# Read memories with a flag. Each row is read by its key, because the planner lacks the statistics for a good join after a
# bulk insert.
WAITING_MEMORIES = """
SELECT m.* FROM (
    SELECT memory_id FROM memories_upkeep
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND {flag} AND memory_id <> ALL(%(without)s::uuid[])
    ORDER BY memory_id OFFSET 0
) u CROSS JOIN LATERAL (
    SELECT id, left(content, %(longest)s), role, type, occurred_at, session FROM memories_memory
    WHERE tenant_id = %(tenant)s AND id = u.memory_id AND status = 'active' LIMIT 1
) m LIMIT %(limit)s
"""

# Find the next waiting agents of all tenants, up to `per_tenant` of each. Tenants are in random order; by id, the oldest would always be first.
WAITING_AGENTS = """
WITH tenants AS MATERIALIZED (SELECT id FROM tenants_tenant ORDER BY random())
SELECT t.id, waiting.agent_id FROM tenants t CROSS JOIN LATERAL (
    SELECT w.agent_id FROM ({waiting}) w WHERE w.agent_id <> ALL(%(passed)s::uuid[]) LIMIT %(per_tenant)s
) waiting LIMIT %(found)s
"""

# Find agents with an episode to summarize, a delay after its end. An episode whose end is further in the future than the delay, by
# a clock that ran ahead, is summarized at once.
AGENTS_TO_SUMMARIZE = """
SELECT DISTINCT agent_id FROM memories_episode
WHERE tenant_id = t.id AND ended_at IS NOT NULL AND summarized_at IS NULL AND failures < {tries}
    AND ended_at NOT BETWEEN now() - {delay} AND now() + {delay}
"""

# Read the memories of each episode, or an even sample of an episode of more than `read`.
EPISODE_TEXTS = """
SELECT e.id, m.* FROM memories_episode e CROSS JOIN LATERAL (
    SELECT left(content, %(longest)s), role, type, occurred_at FROM memories_memory
    WHERE tenant_id = %(tenant)s AND episode_id = e.id AND status = 'active'
        AND (expires_at IS NULL OR expires_at > now()) AND sequence > 0 AND sequence %% ((e.size - 1) / %(read)s + 1) = 0
    ORDER BY sequence, id LIMIT %(read)s
) m WHERE e.tenant_id = %(tenant)s AND e.id = ANY(%(ids)s::uuid[])
"""

# Write summaries with their vectors, where the episode has not changed.
STORE_SUMMARIES = """
UPDATE memories_episode e SET summary = r.summary, summarized_by = r.by, summarized_at = now(), lexical = r.lexical,
    embedding = r.embedding, embedding_model = r.embedding_model, failure = '', remembered = false
FROM json_to_recordset(%(rows)s::json) AS r(
    id uuid, size int, summary text, by text, lexical sparsevec, embedding halfvec, embedding_model text
)
WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND e.id = r.id AND e.summarized_at IS NULL
    AND e.ended_at IS NOT NULL AND e.size = r.size
"""

# Find agents with a summary that is not stored as a memory yet.
AGENTS_WITH_UNREMEMBERED = """
SELECT DISTINCT agent_id FROM memories_episode
WHERE tenant_id = t.id AND summarized_at IS NOT NULL AND NOT remembered
"""

# Lock episodes whose summaries are not stored as memories yet, and read the summaries. A summary has the trust of the least
# trusted memory of its episode, and the mean emotional valence of all of them.
UNREMEMBERED_SUMMARIES = """
SELECT e.id, e.summary, e.started_at, e.size, member.trust, member.valence FROM memories_episode e
CROSS JOIN LATERAL (
    SELECT coalesce(min(trust), 1) AS trust, coalesce(avg(emotional_valence), 0) AS valence FROM memories_memory
    WHERE tenant_id = %(tenant)s AND episode_id = e.id AND sequence > 0
) member
WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND e.summarized_at IS NOT NULL AND NOT e.remembered
ORDER BY e.id LIMIT %(limit)s FOR UPDATE OF e
"""
