"""SQL statements about the knowledge graph: recursive traversals, and the neighborhoods of 256 memories at once."""

from __future__ import annotations

from arbor.memory.neighborhood import BESIDE_WEIGHT

# Insert links in bulk; existing links that are weaker get the new strength.
LINK_CONCEPTS = """
INSERT INTO memories_memoryconcept (tenant_id, concept_id, memory_id, strength, created_at)
SELECT %(tenant)s, c.id, new.memory_id, new.strength, now()
FROM unnest(%(memories)s::uuid[], %(keys)s::text[], %(strengths)s::float8[]) AS new (memory_id, key, strength)
JOIN memories_concept c ON c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND c.key = new.key
ORDER BY c.id, new.memory_id
ON CONFLICT (tenant_id, concept_id, memory_id) DO UPDATE SET strength = EXCLUDED.strength
WHERE memories_memoryconcept.strength < EXCLUDED.strength
"""

# Copy all links of a concept to the concept that it is merged into; the old links are deleted with their concept.
MOVE_LINKS = """
INSERT INTO memories_memoryconcept (tenant_id, concept_id, memory_id, strength, created_at)
SELECT tenant_id, %(retained)s, memory_id, strength, created_at FROM memories_memoryconcept
WHERE tenant_id = %(tenant)s AND concept_id = %(gone)s ORDER BY memory_id
ON CONFLICT (tenant_id, concept_id, memory_id) DO UPDATE SET strength = EXCLUDED.strength
WHERE memories_memoryconcept.strength < EXCLUDED.strength
"""

# Move all edges of a merged concept, except those that would be duplicates or self-references, which are deleted later; of duplicates
# the highest weight stays. Returns the changed edges.
MOVE_EDGES = """
WITH ends AS (
    SELECT DISTINCT ON (source, target, relation) * FROM (
        SELECT id, relation, weight, CASE source_id WHEN %(gone)s THEN %(retained)s ELSE source_id END AS source,
            CASE target_id WHEN %(gone)s THEN %(retained)s ELSE target_id END AS target
        FROM memories_edge WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
            AND %(gone)s IN (source_id, target_id)
    ) all_ends WHERE source <> target ORDER BY source, target, relation, weight DESC, id
), raised AS (
    UPDATE memories_edge there SET weight = ends.weight FROM ends
    WHERE there.tenant_id = %(tenant)s AND there.agent_id = %(agent)s AND there.source_id = ends.source
        AND there.target_id = ends.target AND there.relation = ends.relation AND there.weight < ends.weight
    RETURNING there.id
), moved AS (
    UPDATE memories_edge e SET source_id = ends.source, target_id = ends.target FROM ends
    WHERE e.tenant_id = %(tenant)s AND e.id = ends.id AND NOT EXISTS (
        SELECT 1 FROM memories_edge there WHERE there.tenant_id = %(tenant)s AND there.agent_id = %(agent)s
            AND there.source_id = ends.source AND there.target_id = ends.target AND there.relation = ends.relation
    ) RETURNING e.id
)
SELECT id FROM raised UNION ALL SELECT id FROM moved
"""

# The most agents of a tenant that one query returns, those with the lowest ids; the next query returns others once these are done.
_MAX_AGENTS = 2_000

# Find agents for a job run, by a loose index scan, so that the number of waiting memories does not matter. In random order, so
# that no agent is always the last.
WAITING_NEIGHBORHOODS = f"""
SELECT agent_id FROM (
    WITH RECURSIVE agents AS (
        (SELECT agent_id FROM memories_upkeep WHERE tenant_id = t.id AND stale ORDER BY agent_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT u.agent_id FROM memories_upkeep u WHERE u.tenant_id = t.id AND u.stale AND u.agent_id > agents.agent_id
            ORDER BY u.agent_id LIMIT 1
        ) FROM agents WHERE agents.agent_id IS NOT NULL
    )
    SELECT agent_id FROM agents WHERE agent_id IS NOT NULL LIMIT {_MAX_AGENTS}
) stale ORDER BY random()
"""  # noqa: S608 (no external input)

# Acquire an advisory lock if it is free, which the ORM cannot express.
TRY_LOCK_AGENT = "SELECT pg_try_advisory_xact_lock(%(lock)s, hashtext(%(agent)s::text))"

# Read stale neighborhoods with the versions of their rows, and vectors in binary. `xmin` is the number of the transaction that
# wrote this version of the row.
STALE_NEIGHBORHOODS = """
WITH waiting AS MATERIALIZED (
    SELECT memory_id, xmin::text AS version, neighbors FROM memories_upkeep
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND stale ORDER BY memory_id DESC LIMIT %(batch)s
)
SELECT w.memory_id, w.version, w.neighbors::json, m.status = 'active', halfvec_send(m.embedding)
FROM waiting w JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = w.memory_id
"""

_AROUND = """
SELECT e.kind, e.id FROM (
    SELECT target_kind AS kind, target_id AS id, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND source_id = {start}
    UNION ALL
    SELECT source_kind, source_id, weight FROM memories_edge
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND target_id = {start}
    ORDER BY weight DESC, id LIMIT %(most)s
) e
"""

# Find the memories within two edges of each memory. A bounded number of edges of each node is followed, the weightiest.
MEMORIES_WITHIN_TWO_HOPS = f"""
WITH one AS MATERIALIZED (
    SELECT start.id AS root, near.kind, near.id
    FROM unnest(%(ids)s::uuid[]) start (id) CROSS JOIN LATERAL ({_AROUND.format(start="start.id")}) near
), reached AS (
    SELECT root, kind, id, 1 AS hops FROM one
    UNION ALL
    SELECT one.root, near.kind, near.id, 2 FROM one CROSS JOIN LATERAL ({_AROUND.format(start="one.id")}) near
)
SELECT r.root, r.id, min(r.hops) FROM reached r
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = r.id AND m.agent_id = %(agent)s AND m.status = 'active'
WHERE r.kind = 'memory' AND r.id <> r.root GROUP BY r.root, r.id
"""  # noqa: S608

# Find the memories next to these in their episodes.
BESIDE_IN_EPISODE = """
SELECT m.id, o.id FROM memories_memory m
JOIN memories_memory o ON o.tenant_id = %(tenant)s AND o.episode_id = m.episode_id AND o.id <> m.id
    AND o.sequence BETWEEN m.sequence - %(reach)s AND m.sequence + %(reach)s
    AND o.agent_id = %(agent)s AND o.status = 'active'
WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[])
"""

# Read the neighborhoods of active memories that are not stale: thousands, without a model instance for each.
FRESH_NEIGHBORHOODS = """
SELECT u.memory_id, u.neighbors::json FROM memories_upkeep u
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = u.memory_id AND m.status = 'active'
WHERE u.tenant_id = %(tenant)s AND u.memory_id = ANY(%(ids)s::uuid[]) AND NOT u.stale AND u.neighbors IS NOT NULL
"""

# Read vectors in binary.
VECTORS_OF = """
SELECT id, halfvec_send(embedding) FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""

# Mark neighborhoods stale whose rows nobody else has locked.
MARK_FRESH_STALE = """
WITH locked AS MATERIALIZED (
    SELECT memory_id FROM memories_upkeep
    WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[]) AND NOT stale
    ORDER BY memory_id FOR UPDATE SKIP LOCKED
)
UPDATE memories_upkeep u SET stale = true FROM locked
WHERE u.tenant_id = %(tenant)s AND u.memory_id = locked.memory_id RETURNING u.memory_id
"""

# Write neighborhoods, if the version of the row is still the one that was read.
WRITE_NEIGHBORHOODS = """
WITH locked AS MATERIALIZED (
    SELECT u.memory_id, r.neighbors
    FROM json_to_recordset(%(rows)s::json) AS r (id uuid, version text, neighbors jsonb)
    JOIN memories_upkeep u ON u.tenant_id = %(tenant)s AND u.memory_id = r.id AND u.xmin::text = r.version
    WHERE u.memory_id = ANY(%(ids)s::uuid[])
    ORDER BY u.memory_id FOR UPDATE OF u SKIP LOCKED
)
UPDATE memories_upkeep u SET neighbors = locked.neighbors, computed_at = now(), stale = false
FROM locked WHERE u.tenant_id = %(tenant)s AND u.memory_id = locked.memory_id AND u.memory_id = ANY(%(ids)s::uuid[])
"""

# Mark the neighborhoods of memories stale, with those of their neighbors and of the memories at edges of `ends` where requested: in
# one statement, because heartbeats wait for it. Stale rows are written too: their new version prevents a running step from storing
# a result of old inputs.
MARK_NEIGHBORHOODS = """
WITH touched AS (
    SELECT unnest(%(ids)s::uuid[]) AS id
    UNION
    SELECT neighbor::uuid FROM memories_upkeep u, jsonb_object_keys(u.neighbors) neighbor
    WHERE %(with_neighbors)s AND u.tenant_id = %(tenant)s AND u.memory_id = ANY(%(ids)s::uuid[])
    UNION
    SELECT near.id FROM memories_edge e CROSS JOIN LATERAL (
        VALUES (e.source_kind, e.source_id), (e.target_kind, e.target_id)
    ) near (kind, id)
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = ANY(%(agents)s::uuid[]) AND near.kind = 'memory'
        AND (e.source_id = ANY(%(ends)s::uuid[]) OR e.target_id = ANY(%(ends)s::uuid[]))
)
INSERT INTO memories_upkeep (tenant_id, memory_id, agent_id, stale, unclustered, unextracted, unweighed, unindexed)
SELECT m.tenant_id, m.id, m.agent_id, true, true, true, false, true
FROM touched CROSS JOIN LATERAL (
    SELECT tenant_id, id, agent_id FROM memories_memory WHERE tenant_id = %(tenant)s AND id = touched.id LIMIT 1
) m ORDER BY m.id
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET stale = true
"""

# Read all vectors of a mind in binary; the caller fetches them in blocks.
ALL_VECTORS = """
SELECT id, halfvec_send(embedding) FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND embedding IS NOT NULL
    AND (expires_at IS NULL OR expires_at > now())
"""

# Insert a relation, or raise the weight of the existing one and replace its note, unless the new note is empty.
WRITE_RELATION = """
INSERT INTO memories_edge AS old (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation,
    weight, note, origin, created_at)
VALUES (%(tenant)s, %(agent)s, %(id)s, %(source_kind)s, %(source)s, %(target_kind)s, %(target)s, %(relation)s,
    %(weight)s, %(note)s, left(%(origin)s, 200), now())
ON CONFLICT (tenant_id, agent_id, source_id, target_id, relation) DO UPDATE
SET weight = greatest(old.weight, EXCLUDED.weight), note = coalesce(nullif(EXCLUDED.note, ''), old.note)
RETURNING weight
"""

# Part: edges from the frontier, in the directions in which their relations are followed.
_LINKS = """
SELECT target_id AS id, target_kind AS kind, source_id AS via, relation, weight, true AS forward FROM memories_edge
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND source_id = ANY(w.frontier) AND relation = ANY(%(forward)s)
UNION ALL
SELECT source_id, source_kind, target_id, relation, weight, false FROM memories_edge
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND target_id = ANY(w.frontier) AND relation = ANY(%(backward)s)
UNION ALL
SELECT concept_id, 'concept', memory_id, 'instance_of', strength, true FROM memories_memoryconcept
WHERE tenant_id = %(tenant)s AND memory_id = ANY(w.frontier) AND 'instance_of' = ANY(%(forward)s)
UNION ALL
SELECT memory_id, 'memory', concept_id, 'instance_of', strength, false FROM memories_memoryconcept
WHERE tenant_id = %(tenant)s AND concept_id = ANY(w.frontier) AND 'instance_of' = ANY(%(backward)s)
"""

# Part: the next or the previous memory of an episode. These edges have no rows: the order of memories implies them.
_NEXT = """
UNION ALL
SELECT beside.id, 'memory', m.id, 'temporal_next', {weight}, {forward} FROM memories_memory m CROSS JOIN LATERAL (
    SELECT id FROM memories_memory
    WHERE tenant_id = %(tenant)s AND episode_id = m.episode_id AND sequence {beyond} m.sequence
    ORDER BY sequence {order} LIMIT 1
) beside
WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.id = ANY(w.frontier)
    AND 'temporal_next' = ANY(%({followed})s)
"""

# Part: the broader and the narrower concepts, and the goals above and below.
_PARENTS = """
UNION ALL
SELECT id, '{kind}', parent_id, 'parent_of', 1.0, true FROM {table}
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND parent_id = ANY(w.frontier) AND 'parent_of' = ANY(%(forward)s)
UNION ALL
SELECT parent_id, '{kind}', id, 'parent_of', 1.0, false FROM {table}
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = ANY(w.frontier) AND parent_id IS NOT NULL
    AND 'parent_of' = ANY(%(backward)s)
"""

# Traverse the graph recursively. One row for each distance: the nodes first reached there, and the edges to them. Visited nodes
# are not visited again, so a cycle ends the traversal; of more nodes than the limit, those with the weightiest edges are visited.
TRAVERSE = f"""
WITH RECURSIVE traversal AS (
    SELECT 0 AS hops, ARRAY[%(start)s]::uuid[] AS frontier, ARRAY[%(start)s]::uuid[] AS visited, NULL::json AS steps
    UNION ALL
    SELECT w.hops + 1, met.ids, w.visited || met.ids, met.steps
    FROM traversal w CROSS JOIN LATERAL (
        SELECT array_agg(step.id) AS ids, json_agg(step) AS steps FROM (
            SELECT * FROM (
                SELECT DISTINCT ON (id) * FROM (
                    {_LINKS}
                    {_NEXT.format(weight=BESIDE_WEIGHT, forward="true", beyond=">", order="ASC", followed="forward")}
                    {_NEXT.format(weight=BESIDE_WEIGHT, forward="false", beyond="<", order="DESC", followed="backward")}
                    {_PARENTS.format(kind="concept", table="memories_concept")}
                    {_PARENTS.format(kind="goal", table="goals_goal")}
                ) link WHERE id <> ALL(w.visited) ORDER BY id, weight DESC, relation, via, forward
            ) nearest ORDER BY weight DESC, id LIMIT greatest(0, %(nodes)s - cardinality(w.visited))
        ) step
    ) met
    WHERE w.hops < %(hops)s AND met.ids IS NOT NULL AND (%(end)s::uuid IS NULL OR %(end)s <> ALL(w.visited))
)
SELECT steps FROM traversal WHERE hops > 0 ORDER BY hops
"""  # noqa: S608 (no external input)

# Read the present limit of a statement's time.
READ_TIMEOUT = "SELECT current_setting('statement_timeout')"

# Limit the time of statements until the transaction ends, to bound a traversal.
SET_TIMEOUT = "SELECT set_config('statement_timeout', %(value)s, true)"

# Part: the labels of nodes of one kind. A union of these reads nodes of several kinds, in tables of several apps.
LABELS = """
SELECT '{kind}' AS kind, id, left({label}, {most}) FROM {table}
WHERE tenant_id = %(tenant)s{condition} AND id = ANY(%(ids)s::uuid[])
"""
