"""SQL statements of embedding: find waiting texts across tenants, and write vectors in bulk."""

from __future__ import annotations

from apps.memories.services.embedding.missing_vectors import REFUSED_BY_EMBEDDER_SQL, WAITS_FOR_VECTOR_SQL

# Part: the query's vector if it is comparable with the agent's vectors, else NULL; recall then ranks by words only. A vector
# computed before the agent moved to another model must never be compared with the new ones, so the same statement, thus the
# same snapshot, checks the model. Add `query_vector(…)` to the statement's values.
QUERY_VECTOR = """(
    SELECT %(vector)s::halfvec WHERE NOT EXISTS (
        SELECT FROM memories_mind WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
            AND (embedding_dimension <> %(vector_dimension)s
                OR embedding_model <> coalesce(%(vector_model)s, embedding_model))
    )
)"""

# Read the model of a mind.
MODEL_OF_MIND = """
SELECT embedding_model, embedding_dimension FROM memories_mind
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
"""

# Buffer items come first because they expire soonest, then summaries, which represent many memories. Within a kind, agents
# take turns among the oldest and the latest texts, so that one agent's flood does not hide the texts of others.
_OF_KIND = """
    (SELECT '{table}' AS kind, agent_id, id FROM (
        SELECT agent_id, id, row_number() OVER (PARTITION BY agent_id ORDER BY at, id) AS turn FROM (
            (SELECT w.agent_id, w.id, w.{at} AS at FROM {table} w WHERE {waits} {agents} ORDER BY w.{at} LIMIT %(candidates)s)
            UNION
            (SELECT w.agent_id, w.id, w.{at} FROM {table} w WHERE {waits} {agents} ORDER BY w.{at} DESC LIMIT %(candidates)s)
        ) ends
    ) turns ORDER BY turn, random() LIMIT %(per_tenant)s)
"""

_UNEMBEDDED = f"w.tenant_id = t.id AND {WAITS_FOR_VECTOR_SQL}"

# The time of a row by which texts are ordered, and the condition for a row to wait, by table.
_WAITS = {
    "memories_bufferitem": ("created_at", f"{_UNEMBEDDED} AND w.expires_at > now()"),
    "memories_episode": ("started_at", f"{_UNEMBEDDED} AND w.summarized_at IS NOT NULL AND w.summary <> ''"),
    "memories_memory": ("created_at", f"{_UNEMBEDDED} AND w.status = 'active'"),
}

_OF_TENANT = " UNION ALL ".join(
    _OF_KIND.replace("{table}", kind).replace("{at}", at).replace("{waits}", waits)
    for kind, (at, waits) in _WAITS.items()
)

_WAITING = """
WITH tenants AS MATERIALIZED (SELECT id FROM tenants_tenant t WHERE status = 'active' {tenants} ORDER BY random())
SELECT t.id, w.agent_id, w.id, w.kind, k.embedding_model, k.embedding_dimension
FROM tenants t CROSS JOIN LATERAL ({of_tenant} LIMIT %(per_tenant)s) w
LEFT JOIN memories_mind k ON k.tenant_id = t.id AND k.agent_id = w.agent_id
LIMIT %(chunk)s
"""

# Part: tenants with an embedder that does not rest. While an embedder rests, its agents wait, and tenants without another
# embedder are skipped. Agents without a mind have the installation's embedder.
TENANTS_WITH_OTHER_EMBEDDERS = """AND (
    EXISTS (
        SELECT FROM memories_mind
        WHERE tenant_id = t.id AND embedding_model || ' ' || embedding_dimension <> ALL(%(resting)s)
    ) OR %(installation)s <> ALL(%(resting)s) AND EXISTS (
        SELECT FROM agents_agent a WHERE a.tenant_id = t.id
            AND NOT EXISTS (SELECT FROM memories_mind k WHERE k.tenant_id = a.tenant_id AND k.agent_id = a.id)
    )
)"""

# Part: agents whose embedder does not rest.
AGENTS_WITH_OTHER_EMBEDDERS = """AND coalesce((
    SELECT k.embedding_model || ' ' || k.embedding_dimension FROM memories_mind k
    WHERE k.tenant_id = w.tenant_id AND k.agent_id = w.agent_id
), %(installation)s) <> ALL(%(resting)s)"""

# Find texts across tenants, which get equal shares, by an index for each kind.
WAITING_TEXTS = _WAITING.replace("{of_tenant}", _OF_TENANT)

# Write vectors in bulk. Rows are locked in the order of ids; rows locked by others are skipped, and so are rows of agents that
# were moved to another model in the meantime.
STORE_VECTORS = """
WITH locked AS MATERIALIZED (
    SELECT r.id, r.embedding FROM json_to_recordset(%(rows)s::json) AS r(id uuid, embedding halfvec)
    JOIN {table} m ON m.tenant_id = %(tenant)s AND m.id = r.id AND m.embedding IS NULL
    WHERE m.id = ANY(%(ids)s::uuid[]) AND NOT EXISTS (
        SELECT FROM memories_mind k WHERE k.tenant_id = %(tenant)s AND k.agent_id = m.agent_id
            AND (k.embedding_model, k.embedding_dimension) <> (%(name)s, %(dimension)s)
    )
    ORDER BY r.id FOR UPDATE OF m SKIP LOCKED
)
UPDATE {table} m SET embedding = locked.embedding, embedding_model = %(made_by)s
FROM locked WHERE m.tenant_id = %(tenant)s AND m.id = locked.id AND m.id = ANY(%(ids)s::uuid[])
RETURNING m.id
"""

# Count the texts without a vector in the three tables, of all active tenants: texts of suspended ones are not embedded.
COUNT_BACKLOG = f"""
SELECT count(*) FILTER (WHERE NOT refused), min(at) FILTER (WHERE NOT refused), count(*) FILTER (WHERE refused)
FROM (
    SELECT tenant_id, created_at AS at, {REFUSED_BY_EMBEDDER_SQL} AS refused
    FROM memories_memory WHERE embedding IS NULL AND status = 'active'
    UNION ALL
    SELECT tenant_id, summarized_at, {REFUSED_BY_EMBEDDER_SQL}
    FROM memories_episode WHERE embedding IS NULL AND summarized_at IS NOT NULL AND summary <> ''
    UNION ALL
    SELECT tenant_id, created_at, {REFUSED_BY_EMBEDDER_SQL}
    FROM memories_bufferitem WHERE embedding IS NULL AND expires_at > now()
) waiting JOIN tenants_tenant t ON t.id = waiting.tenant_id AND t.status = 'active'
"""  # noqa: S608 (no external input)

# Count a failure in the database, because several workers may fail at once; the delay is that of
# `arbor.embedding.backoff.embedder_retry_delay`.
COUNT_FAILURE = """
INSERT INTO memories_embedderfault AS f (embedding_model, failures, since, retry_at, error)
VALUES (%(model)s, 1, now(), now() + %(first)s, %(error)s)
ON CONFLICT (embedding_model) DO UPDATE SET failures = f.failures + 1, error = EXCLUDED.error,
    retry_at = now() + least(%(longest)s, %(first)s * power(2, least(f.failures, 20)))
RETURNING failures, retry_at
"""

# Count agents by model, of all tenants, except those with the given model. The ORM reads one tenant at a time.
OTHER_MODELS = """
SELECT embedding_model, embedding_dimension, count(*) FROM memories_mind
WHERE (embedding_model, embedding_dimension) <> (%s, %s) GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
"""

# Delete a bounded number of cached vectors, the longest unused first.
TRIM_CACHE = """
DELETE FROM memories_embeddingcacheentry WHERE tenant_id = %(tenant)s AND (model, content_hash) IN (
    SELECT model, content_hash FROM memories_embeddingcacheentry
    WHERE tenant_id = %(tenant)s AND used_at < now() - %(age)s ORDER BY used_at LIMIT %(most)s
)
"""

# Find the agents to move, one, those of a tenant or all, each with the numbers of its memories and of their next vectors.
AGENTS_TO_MOVE = """
SELECT k.tenant_id, k.agent_id, t.slug, a.name, k.embedding_model, k.embedding_dimension,
    (SELECT count(*) FROM memories_memory m WHERE m.tenant_id = k.tenant_id AND m.agent_id = k.agent_id),
    (SELECT count(*) FROM memories_nextembedding n
        WHERE n.tenant_id = k.tenant_id AND n.agent_id = k.agent_id AND n.embedding_model = %(next)s)
FROM memories_mind k
JOIN tenants_tenant t ON t.id = k.tenant_id
JOIN agents_agent a ON a.tenant_id = k.tenant_id AND a.id = k.agent_id
WHERE (%(tenant)s::uuid IS NULL OR k.tenant_id = %(tenant)s) AND (%(agent)s::uuid IS NULL OR k.agent_id = %(agent)s)
    AND ((k.embedding_model, k.embedding_dimension) <> (%(name)s, %(dimension)s) OR EXISTS (
        SELECT FROM memories_nextembedding n WHERE n.tenant_id = k.tenant_id AND n.agent_id = k.agent_id
    ))
ORDER BY k.tenant_id, k.agent_id
"""

# Insert next vectors in bulk, except for memories that were purged, or that another run has embedded already.
WRITE_NEXT_VECTORS = """
INSERT INTO memories_nextembedding (tenant_id, agent_id, memory_id, embedding_model, embedding, lexical)
SELECT m.tenant_id, m.agent_id, m.id, %(next)s, r.embedding, r.lexical
FROM json_to_recordset(%(rows)s::json) AS r(id uuid, embedding halfvec, lexical sparsevec)
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = r.id AND m.id = ANY(%(ids)s::uuid[])
ORDER BY m.id FOR KEY SHARE OF m
ON CONFLICT DO NOTHING
"""

# Replace all vectors of an agent in one pass, for which its writers wait; memories without a next vector get none.
SWITCH_VECTORS = """
UPDATE memories_memory m SET
    embedding = n.embedding,
    embedding_model = CASE
        WHEN n.memory_id IS NULL THEN '' WHEN n.embedding IS NULL THEN %(refused)s ELSE %(made_by)s END,
    lexical = coalesce(n.lexical, m.lexical)
FROM memories_memory old LEFT JOIN memories_nextembedding n
    ON n.tenant_id = %(tenant)s AND n.memory_id = old.id AND n.embedding_model = %(next)s
WHERE old.tenant_id = %(tenant)s AND old.agent_id = %(agent)s
    AND m.tenant_id = %(tenant)s AND m.id = old.id
"""
