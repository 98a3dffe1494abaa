"""SQL statements about clusters, whose job reads and writes up to 10,000 memories at once."""

from __future__ import annotations

from apps.memories.services.embedding.missing_vectors import WAITS_FOR_VECTOR_SQL

# Read one memory with its vector in binary, as `read_vectors` decodes it.
MEMORY_VECTOR = """
SELECT agent_id, status, halfvec_send(embedding) FROM memories_memory WHERE tenant_id = %(tenant)s AND id = %(memory)s
"""

# Read the members of a cluster, the nearest first, with vectors in binary, which numpy decodes at once. `is_home`: the
# member belongs to no other cluster more strongly.
CLUSTER_MEMBERS = """
SELECT m.id, own.strength, m.importance, m.emotional_valence,
    CASE WHEN vector_dims(m.embedding) = %(dimension)s THEN halfvec_send(m.embedding) END, left(m.content, %(characters)s),
    NOT EXISTS (
        SELECT FROM memories_clustermember other
        WHERE other.tenant_id = %(tenant)s AND other.memory_id = m.id AND other.strength > own.strength
    ) AS is_home
FROM memories_clustermember own
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = own.memory_id AND m.status = 'active'
WHERE own.tenant_id = %(tenant)s AND own.cluster_id = %(cluster)s ORDER BY own.strength DESC, m.id
"""

# Remove memories from clusters and mark the clusters stale. The rows are locked in the order of ids, as everywhere,
# to avoid deadlocks.
REMOVE_MEMORIES = """
WITH gone AS (
    DELETE FROM memories_clustermember WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[])
    RETURNING cluster_id
), locked AS MATERIALIZED (
    SELECT id FROM memories_cluster
    WHERE tenant_id = %(tenant)s AND id IN (SELECT cluster_id FROM gone) ORDER BY id FOR UPDATE
)
UPDATE memories_cluster c SET stale = true, size = greatest(0, c.size - (
    SELECT count(*)::int FROM gone WHERE gone.cluster_id = c.id
))
FROM locked WHERE c.tenant_id = %(tenant)s AND c.id = locked.id
"""

# Part: the last reclustering is longer ago than a period, or in the future, after a clock was set back.
CLUSTERED_LONG_AGO = "d.clustered_at NOT BETWEEN now() - interval '{seconds} seconds' AND now()"

# Part: memories of a mind that are in no cluster yet.
WAITING_UNCLUSTERED = """
    SELECT FROM memories_upkeep u
    JOIN memories_memory m ON m.tenant_id = u.tenant_id AND m.id = u.memory_id
        AND m.status = 'active' AND m.embedding IS NOT NULL
    WHERE u.tenant_id = d.tenant_id AND u.agent_id = d.agent_id AND u.unclustered
"""

# Part: condition for a mind to be reclustered. While members of clusters wait for their vectors, as after the restore of a seed
# without comparable ones, the mind waits too: without these members, clusters would dissolve, and lose the names that were given.
# Such clusters have no center; to read only their members spares the tenant's other memories that wait for vectors.
MIND_IS_DUE = """(
    (d.clustered_at IS NULL
    OR EXISTS (
        SELECT FROM memories_cluster c WHERE c.tenant_id = d.tenant_id AND c.agent_id = d.agent_id AND c.stale
            AND (c.centroid IS NULL OR {long_ago})
    )
    OR {long_ago} AND EXISTS ({waiting}))
    AND NOT EXISTS (
        SELECT FROM memories_cluster c
        JOIN memories_clustermember member ON member.tenant_id = c.tenant_id AND member.cluster_id = c.id
        JOIN memories_memory m ON m.tenant_id = member.tenant_id AND m.id = member.memory_id
        WHERE c.tenant_id = d.tenant_id AND c.agent_id = d.agent_id AND c.centroid IS NULL
            AND m.status = 'active' AND {waits_for_vector}
    )
)""".replace("{waits_for_vector}", WAITS_FOR_VECTOR_SQL)

# Find agents for a job run, across all tenants: minds that were never clustered or whose centers were emptied, minds with
# changes whose last reclustering is long ago, and minds with clusters and with memories that are in none yet.
MINDS_TO_CLUSTER = """
SELECT d.agent_id FROM memories_mind d WHERE d.tenant_id = t.id AND {due}
UNION ALL
SELECT d.agent_id FROM memories_mind d WHERE d.tenant_id = t.id AND NOT {due} AND EXISTS ({waiting})
    AND EXISTS (SELECT FROM memories_cluster c WHERE c.tenant_id = d.tenant_id AND c.agent_id = d.agent_id)
"""

# Read the latest memories, with vectors in binary, and whether each waits for a cluster.
LATEST_VECTORS = """
SELECT m.id, halfvec_send(m.embedding), coalesce(u.unclustered, false)
FROM memories_memory m
LEFT JOIN memories_upkeep u ON u.tenant_id = m.tenant_id AND u.memory_id = m.id
WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active' AND m.embedding IS NOT NULL
    AND (m.expires_at IS NULL OR m.expires_at > now()) AND vector_dims(m.embedding) = %(dimension)s
    AND l2_norm(m.embedding) > 0
ORDER BY m.occurred_at DESC, m.id LIMIT %(latest)s
"""

# Read the clusters of an agent that have a center, with the centers in binary.
CLUSTER_CENTERS = """
SELECT id, halfvec_send(centroid) FROM memories_cluster
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND centroid IS NOT NULL
    AND vector_dims(centroid) = %(dimension)s ORDER BY id
"""

# Add memories to clusters, clear their flags and count members, in one statement. Memories archived and clusters deleted in
# the meantime are skipped.
JOIN_CLUSTERS = """
WITH added AS (
    INSERT INTO memories_clustermember (tenant_id, cluster_id, memory_id, strength, added_at)
    SELECT %(tenant)s, c.id, m.id, new.strength, now()
    FROM unnest(%(clusters)s::uuid[], %(memories)s::uuid[], %(strengths)s::float8[]) AS new (cluster, memory, strength)
    JOIN memories_cluster c ON c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND c.id = new.cluster
    JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.id = new.memory
        AND m.status = 'active'
    ORDER BY c.id, m.id
    ON CONFLICT (tenant_id, cluster_id, memory_id) DO NOTHING RETURNING cluster_id, memory_id
), unflagged AS (
    UPDATE memories_upkeep u SET unclustered = false
    WHERE u.tenant_id = %(tenant)s AND u.memory_id IN (SELECT memory_id FROM added) AND u.unclustered
), grown AS (
    UPDATE memories_cluster c SET size = c.size + joined.count, stale = true
    FROM (SELECT cluster_id, count(*) FROM added GROUP BY cluster_id) joined
    WHERE c.tenant_id = %(tenant)s AND c.id = joined.cluster_id
)
SELECT count(DISTINCT memory_id) FROM added
"""

# Evaluate MIND_IS_DUE for one agent.
CLUSTERING_STATE = (
    "SELECT {due} FROM memories_mind d WHERE d.tenant_id = %(tenant)s AND d.agent_id = %(agent)s"
)

# Read a whole mind with vectors in binary.
MIND_VECTORS = """
SELECT id, halfvec_send(embedding), importance, emotional_valence, occurred_at FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND embedding IS NOT NULL
    AND (expires_at IS NULL OR expires_at > now()) AND vector_dims(embedding) = %(dimension)s
    AND l2_norm(embedding) > 0
"""

# Remove all members of clusters and flag them as unclustered, also those that joined after the mind was read.
DISSOLVE_CLUSTERS = """
WITH gone AS (
    DELETE FROM memories_clustermember WHERE tenant_id = %(tenant)s AND cluster_id = ANY(%(ids)s::uuid[])
    RETURNING memory_id
)
UPDATE memories_upkeep SET unclustered = true
WHERE tenant_id = %(tenant)s AND memory_id IN (SELECT memory_id FROM gone)
"""

# Insert and update clusters. A cluster gets the name from its keywords only if it still has the name in `computed_names`, so a
# name that somebody gave stays.
WRITE_CLUSTERS = """
INSERT INTO memories_cluster AS old (tenant_id, agent_id, id, name, centroid, keywords, emotional_valence,
    emotional_intensity, importance, size, stale, activations, created_at, updated_at)
SELECT %(tenant)s, %(agent)s, new.id, new.name, new.centroid, new.keywords, new.valence, new.intensity,
    new.importance, new.size, false, 0, now(), now()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (id uuid, name text, centroid halfvec, keywords jsonb,
    valence float8, intensity float8, importance float8, size int)
ORDER BY new.id
ON CONFLICT (tenant_id, id) DO UPDATE SET centroid = EXCLUDED.centroid, keywords = EXCLUDED.keywords,
    name = CASE WHEN old.name = %(computed_names)s::jsonb ->> old.id::text THEN EXCLUDED.name ELSE old.name END,
    emotional_valence = EXCLUDED.emotional_valence, emotional_intensity = EXCLUDED.emotional_intensity,
    importance = EXCLUDED.importance, size = EXCLUDED.size, stale = false, updated_at = now()
"""

# Remove memories from clusters.
LEAVE_CLUSTERS = """
DELETE FROM memories_clustermember m USING unnest(%(clusters)s::uuid[], %(memories)s::uuid[]) AS gone (cluster, memory)
WHERE m.tenant_id = %(tenant)s AND m.cluster_id = gone.cluster AND m.memory_id = gone.memory
"""

# Insert and update members.
WRITE_MEMBERS = """
INSERT INTO memories_clustermember (tenant_id, cluster_id, memory_id, strength, added_at)
SELECT %(tenant)s, new.cluster, m.id, new.strength, now()
FROM unnest(%(clusters)s::uuid[], %(memories)s::uuid[], %(strengths)s::float8[]) AS new (cluster, memory, strength)
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = new.memory AND m.status = 'active'
ORDER BY new.cluster, m.id
ON CONFLICT (tenant_id, cluster_id, memory_id) DO UPDATE SET strength = EXCLUDED.strength
"""

# Count members again: some may have joined or left during the computation. Clusters whose number differs are marked stale.
RECOUNT_MEMBERS = """
UPDATE memories_cluster c SET size = now.size, stale = true
FROM (
    SELECT c.id, count(m.memory_id) AS size FROM memories_cluster c
    LEFT JOIN memories_clustermember m ON m.tenant_id = c.tenant_id AND m.cluster_id = c.id
    WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s GROUP BY c.id
) now WHERE c.tenant_id = %(tenant)s AND c.id = now.id AND c.size <> now.size
"""
