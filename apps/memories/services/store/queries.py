"""SQL statements that store memories: all memories of a batch of heartbeats are placed and written together."""

from __future__ import annotations

# Part: the columns of an existing memory, in the order in which `PlacedMemory.of_row` reads them.
PLACED_COLUMNS = """
m.id, m.type, m.content, m.status, m.occurred_at, m.expires_at, m.retention, m.importance, m.trust,
m.emotional_valence, m.role, m.detail
"""

# Part: the condition for memories that are compared by their vectors, which have no session.
_ALONE = """
status = 'active' AND session = '' AND embedding IS NOT NULL AND (expires_at IS NULL OR expires_at > now())
"""

# The maximum of near memories compared with each new memory: the nearest may make another statement (`says_the_same`).
MAX_COMPARED = 20

# Compare new memories with the memories of their agents, exactly. Only memories without a session are compared: an index excludes
# turns of conversations before their vectors are read. All columns of a found memory are selected at once, because the planner
# would read all of the tenant's rows for a join by id. OFFSET 0 prevents PostgreSQL from cutting a new memory's vector out of the
# array again for each comparison.
NEAR_DUPLICATES = f"""
SELECT r.search, r.number, found.*
FROM (
    SELECT search, number, agent, (%(numbers)s::real[])[first : last]::halfvec AS embedding
    FROM json_to_recordset(%(rows)s::json) AS r(search int, number int, agent uuid, first int, last int) OFFSET 0
) r
CROSS JOIN LATERAL (
    SELECT -(m.embedding <#> r.embedding) AS similarity, {PLACED_COLUMNS} FROM memories_memory m
    WHERE tenant_id = %(tenant)s AND agent_id = r.agent AND {_ALONE} AND -(m.embedding <#> r.embedding) >= %(least)s
    ORDER BY m.embedding <#> r.embedding, m.id LIMIT {MAX_COMPARED}
) found
ORDER BY r.search, r.number, found.similarity DESC, found.id
"""  # noqa: S608 (no external input)

# Read the vectors of an agent's memories without a session, in binary.
VECTORS_ALONE = f"""
SELECT id, halfvec_send(embedding) FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND {_ALONE}
"""  # noqa: S608

# Read the rows of near duplicates.
ROWS_OF = f"SELECT {PLACED_COLUMNS} FROM memories_memory m WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[])"  # noqa: S608

# Acquire advisory locks, which the ORM cannot express.
LOCK_MINDS = "SELECT count(pg_advisory_xact_lock(key)) FROM unnest(%(keys)s::bigint[]) key"

# The most occurrences in the row of recent terms: PostgreSQL does not move the row's array out of line, and several transactions
# add to it before its terms are counted.
MAX_RECENT_TERMS = 384

# Part: the number of an agent's memories with each of some terms: those counted, and those in the row of recent terms.
TERM_COUNTS = """
SELECT term, sum(memories)::int AS memories FROM (
    SELECT term, memories FROM memories_term
    WHERE tenant_id = %(tenant)s AND agent_id = {agent} AND term = ANY({terms})
    UNION ALL
    SELECT occurrence.term, 1 FROM memories_term CROSS JOIN unnest(recent) AS occurrence(term)
    WHERE tenant_id = %(tenant)s AND agent_id = {agent} AND memories_term.term = -1 AND occurrence.term = ANY({terms})
) counted GROUP BY term
"""

# Parts of a statement, with the values of `term_count_rows`. Terms of new memories are added to the row of recent terms, which
# writes less to the WAL than a row for each term; when they are too many, or terms are subtracted, all are counted. Most terms have
# a row, so rows are updated before new ones are inserted: for a conflict, PostgreSQL would lock each row before it writes the row,
# and log both. New occurrences are added in front: the WAL leaves out the unchanged end of a row.
COUNT_TERMS = """
given AS MATERIALIZED (
    SELECT (%(counted_agents)s::uuid[])[c.agent] AS agent_id, c.term, c.change
    FROM unnest(%(agent_numbers)s::int[], %(terms)s::int[], %(changes)s::int[]) AS c(agent, term, change)
), pending AS MATERIALIZED (
    SELECT n.agent_id, t.recent, n.least < 0 OR n.size + coalesce(cardinality(t.recent), 0) > %(most_recent)s AS counts
    FROM (SELECT agent_id, sum(change) AS size, min(change) AS least FROM given GROUP BY agent_id) n
    LEFT JOIN LATERAL (
        SELECT recent FROM memories_term WHERE tenant_id = %(tenant)s AND agent_id = n.agent_id AND term = -1 OFFSET 0
    ) t ON true
), counted AS MATERIALIZED (
    SELECT c.agent_id, c.term, sum(c.change)::int AS change FROM (
        SELECT agent_id, term, change FROM given
        UNION ALL SELECT p.agent_id, r.term, 1 FROM pending p CROSS JOIN unnest(p.recent) AS r(term)
    ) c JOIN pending p ON p.agent_id = c.agent_id AND p.counts GROUP BY c.agent_id, c.term
), known AS (
    UPDATE memories_term t SET memories = greatest(0, t.memories + c.change) FROM counted c
    WHERE t.tenant_id = %(tenant)s AND t.agent_id = c.agent_id AND t.term = c.term
        AND t.agent_id = ANY(%(counted_agents)s::uuid[])
    RETURNING t.agent_id, t.term
), terms AS (
    INSERT INTO memories_term (tenant_id, agent_id, term, memories)
    SELECT %(tenant)s, c.agent_id, c.term, c.change FROM counted c
    WHERE NOT EXISTS (SELECT FROM known k WHERE k.agent_id = c.agent_id AND k.term = c.term)
), occurrences AS (
    SELECT p.agent_id, p.recent IS NOT NULL AS has_row, CASE WHEN NOT p.counts THEN ARRAY(
        SELECT g.term FROM given g CROSS JOIN generate_series(1, g.change) WHERE g.agent_id = p.agent_id
    ) || coalesce(p.recent, '{}') ELSE '{}' END AS recent
    FROM pending p WHERE NOT p.counts OR cardinality(p.recent) > 0
), added AS (
    UPDATE memories_term t SET recent = o.recent FROM occurrences o
    WHERE t.tenant_id = %(tenant)s AND t.agent_id = o.agent_id AND t.term = -1
        AND t.agent_id = ANY(%(counted_agents)s::uuid[])
), first_added AS (
    INSERT INTO memories_term (tenant_id, agent_id, term, memories, recent)
    SELECT %(tenant)s, agent_id, -1, 0, recent FROM occurrences WHERE NOT has_row
)
"""

# Count the terms of memories that are stored already.
COUNT_TERMS_ALONE = f"WITH {COUNT_TERMS} SELECT 1"

# Read the term statistics of several agents; part of every recall. A row without a term is that of a mind: the model of its vectors.
# LATERAL and OFFSET make the planner read one range of the key for each agent; for a join it could read all of the tenant's terms.
TERM_STATISTICS = f"""
SELECT request.agent_id, found.term, found.memories, NULL
FROM json_to_recordset(%(requests)s::json) AS request (agent_id uuid, terms int[])
CROSS JOIN LATERAL ({TERM_COUNTS.format(agent="request.agent_id", terms="request.terms")} OFFSET 0) found
UNION ALL
SELECT agent_id, NULL, embedding_dimension, embedding_model FROM memories_mind
WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
"""  # noqa: S608 (no external input)

# Read the number of an agent's memories with each of some terms.
TERM_FREQUENCIES = TERM_COUNTS.format(agent="%(agent)s", terms="%(terms)s::int[]")

# Find the episodes that new memories may belong to: those that began near in time, the open one, the session's latest, and the
# latest that began before the memories, for one of these may last until then. Episodes of a session overlap only where memories were
# added in another order than they occurred.
EPISODES_NEAR = """
SELECT e.id, r.agent, r.session, e.started_at, e.last_at, e.size, e.ended_at IS NULL
FROM json_to_recordset(%(rows)s::json) AS r(agent uuid, session text, first timestamptz, last timestamptz)
CROSS JOIN LATERAL (
    SELECT id, started_at, last_at, size, ended_at FROM memories_episode
    WHERE tenant_id = %(tenant)s AND agent_id = r.agent AND session = r.session
        AND started_at BETWEEN r.first - %(gap)s AND r.last + %(gap)s
    UNION
    SELECT id, started_at, last_at, size, ended_at FROM memories_episode
    WHERE tenant_id = %(tenant)s AND agent_id = r.agent AND session = r.session AND ended_at IS NULL
    UNION (
        SELECT id, started_at, last_at, size, ended_at FROM memories_episode
        WHERE tenant_id = %(tenant)s AND agent_id = r.agent AND session = r.session AND started_at < r.first - %(gap)s
        ORDER BY started_at DESC LIMIT %(earlier)s
    )
    UNION (
        SELECT id, started_at, last_at, size, ended_at FROM memories_episode
        WHERE tenant_id = %(tenant)s AND agent_id = r.agent AND session = r.session
        ORDER BY started_at DESC LIMIT 1
    )
) e
"""

# Part of the statement that writes memories. Episodes that are over are written first, because a session has at most one open
# episode. An episode that gets more members after it was summarized is summarized again.
WRITE_EPISODES = """
INSERT INTO memories_episode (tenant_id, agent_id, id, session, started_at, last_at, ended_at, size, summary,
    summarized_by, failures, failure)
SELECT %(tenant)s, r.agent, r.id, r.session, r.started_at, r.last_at, CASE WHEN NOT r.open THEN now() END, r.size,
    '', '', 0, ''
FROM json_to_recordset(%(episodes)s::json) AS r(
    agent uuid, id uuid, session text, started_at timestamptz, last_at timestamptz, open bool, size int
)
ORDER BY r.open, r.id
ON CONFLICT (tenant_id, id) DO UPDATE SET started_at = EXCLUDED.started_at, last_at = EXCLUDED.last_at,
    ended_at = EXCLUDED.ended_at, size = EXCLUDED.size,
    summarized_at = CASE WHEN EXCLUDED.size = memories_episode.size THEN memories_episode.summarized_at END,
    failures = CASE WHEN EXCLUDED.size = memories_episode.size THEN memories_episode.failures ELSE 0 END
"""

# Read the minds of several agents, and their memories with the given digests. First a row without a digest for each existing agent,
# with the model of its mind, empty for an agent without memories; then the memories. Each digest is searched for all of the agents,
# and `MemoryWriter` drops the memories of other agents: for pairs of agents and digests, or a join with the agents, the planner
# would not use the index, or read it once for each of them.
KNOWN_MEMORIES = f"""
SELECT a.id, k.embedding_model, k.embedding_dimension, NULL AS content_hash, NULL AS session, NULL AS position,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM agents_agent a LEFT JOIN LATERAL (
    SELECT embedding_model, embedding_dimension FROM memories_mind
    WHERE tenant_id = %(tenant)s AND agent_id = a.id LIMIT 1
) k ON true
WHERE a.tenant_id = %(tenant)s AND a.id = ANY(%(agents)s::uuid[])
UNION ALL
SELECT m.agent_id, NULL, NULL, m.content_hash, m.session, m.position, {PLACED_COLUMNS} FROM memories_memory m
WHERE m.tenant_id = %(tenant)s AND m.agent_id = ANY(%(agents)s::uuid[]) AND m.content_hash = ANY(%(digests)s::bytea[])
"""  # noqa: S608

# Part of the statement that writes memories: make the next job run check the quotas of agents that may exceed them by many new
# memories at once. The statement reads the count as it was before these inserts. Term 0 counts all active memories of an agent, of all
# types. The values are those of `_growth`.
MARK_GROWN = f"""
UPDATE memories_mind k SET counted_at = NULL
FROM unnest(%(grown_agents)s::uuid[], %(grown)s::int[]) AS g(agent_id, grown)
WHERE k.tenant_id = %(tenant)s AND k.agent_id = g.agent_id AND k.agent_id = ANY(%(grown_agents)s::uuid[]) AND k.counted_at IS NOT NULL AND EXISTS (
    SELECT FROM ({TERM_COUNTS.format(agent="g.agent_id", terms="ARRAY[0]")}) known WHERE known.memories + g.grown > %(quota)s
)
"""  # noqa: S608

# Insert memories of several agents, with their episodes, terms and minds. All rows are one parameter, instead of 25 for each row:
# four times as fast as the ORM's insert, which spends its time on quoting.
INSERT_MEMORIES = f"""
WITH episodes AS ({WRITE_EPISODES}), {COUNT_TERMS}, grown AS ({MARK_GROWN}), minds AS (
    INSERT INTO memories_mind (tenant_id, agent_id, embedding_model, embedding_dimension)
    SELECT %(tenant)s, k.agent, k.model, k.dimension
    FROM json_to_recordset(%(minds)s::json) AS k(agent uuid, model text, dimension int)
), stored AS (
    INSERT INTO memories_memory (tenant_id, agent_id, id, type, status, content, content_hash, importance, decay_rate,
        trust, emotional_valence, session, position, role, source, detail, occurred_at, created_at, expires_at,
        embedding, embedding_model, lexical, retention, episode_id, sequence)
    SELECT %(tenant)s, r.agent, r.id, r.type, 'active', r.content, decode(r.content_hash, 'hex'), r.importance,
        r.decay_rate, r.trust, r.emotional_valence, r.session, r."position", r.role, r.source, r.detail, r.occurred_at,
        now(), r.expires_at, (%(numbers)s::real[])[r.first : r.last]::halfvec, r.made_by, r.lexical, r.retention,
        r.episode, r.sequence
    FROM json_to_recordset(%(rows)s::json) AS r(
        agent uuid, id uuid, type text, content text, content_hash text, importance float8, decay_rate float8,
        trust float8, emotional_valence float8, session text, "position" int, role text, source text, detail jsonb,
        occurred_at timestamptz, expires_at timestamptz, first int, last int, made_by text, lexical sparsevec,
        retention text, episode uuid, sequence int
    )
    RETURNING agent_id, id
)
INSERT INTO memories_upkeep (tenant_id, agent_id, memory_id, stale, unclustered, unextracted, unweighed, unindexed)
SELECT %(tenant)s, agent_id, id, true, true, true, id = ANY(%(unweighed)s::uuid[]), false FROM stored
"""  # noqa: S608 (no external input)

# Write the changes of memories of several agents that were remembered again.
CHANGE_MEMORIES = """
UPDATE memories_memory m SET status = 'active', archived_at = NULL, expires_at = r.expires_at,
    retention = r.retention, importance = r.importance, trust = r.trust,
    emotional_valence = r.emotional_valence, detail = r.detail
FROM json_to_recordset(%(rows)s::json) AS r(
    id uuid, expires_at timestamptz, retention text, importance float8, trust float8,
    emotional_valence float8, detail jsonb
)
WHERE m.tenant_id = %(tenant)s AND m.id = r.id AND m.id = ANY(%(ids)s::uuid[])
"""

# Relate memories of several agents to the memories into which they evolved.
INSERT_EVOLUTIONS = """
INSERT INTO memories_edge (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation, weight,
    note, origin, created_at)
SELECT %(tenant)s, r.agent, r.id, %(memory)s, r.old, %(memory)s, r.new, %(relation)s, 1, '', r.origin, now()
FROM json_to_recordset(%(rows)s::json) AS r(id uuid, agent uuid, old uuid, new uuid, origin text)
ON CONFLICT DO NOTHING
"""

# Add outcomes of procedures of several agents to their counts.
COUNT_OUTCOMES = """
INSERT INTO memories_practice AS p (tenant_id, memory_id, successes, failures, last_at)
SELECT m.tenant_id, m.id, r.successes, r.failures, now()
FROM json_to_recordset(%(rows)s::json) AS r(agent uuid, id uuid, successes int, failures int)
CROSS JOIN LATERAL (
    SELECT tenant_id, id FROM memories_memory
    WHERE tenant_id = %(tenant)s AND id = r.id AND agent_id = r.agent AND type = 'procedural' LIMIT 1
) m ORDER BY m.id
ON CONFLICT (tenant_id, memory_id) DO UPDATE SET successes = p.successes + EXCLUDED.successes,
    failures = p.failures + EXCLUDED.failures, last_at = EXCLUDED.last_at
"""

# Relate memories of several agents, and mark their neighborhoods stale. LEARNED_FROM changes only the neighborhood of the new
# memory; other relations change both. Memories that this transaction has stored are not marked again: their neighborhoods are stale
# already, and no running step has read them.
INSERT_PROVENANCE = """
WITH related AS (
    INSERT INTO memories_edge (tenant_id, agent_id, id, source_kind, source_id, target_kind, target_id, relation,
        weight, note, origin, created_at)
    SELECT %(tenant)s, r.agent, r.id, %(memory)s, r.source, %(memory)s, r.target, r.relation, 1, '',
        left(r.origin, 200), now()
    FROM json_to_recordset(%(rows)s::json) AS r(
        agent uuid, id uuid, source uuid, target uuid, relation text, origin text
    )
    ON CONFLICT (tenant_id, agent_id, source_id, target_id, relation) DO NOTHING
    RETURNING source_id, target_id, relation
), marked AS MATERIALIZED (
    SELECT u.memory_id FROM memories_upkeep u
    WHERE u.tenant_id = %(tenant)s AND u.memory_id = ANY(%(ends)s::uuid[])
        AND NOT (u.stale AND u.xmin = pg_current_xact_id()::xid)
        AND u.memory_id IN (
            SELECT source_id FROM related UNION ALL SELECT target_id FROM related WHERE relation <> %(learned)s
        )
    ORDER BY u.memory_id FOR UPDATE
)
UPDATE memories_upkeep u SET stale = true FROM marked
WHERE u.tenant_id = %(tenant)s AND u.memory_id = ANY(%(ends)s::uuid[]) AND u.memory_id = marked.memory_id
"""

# Rank code snippets by shared words in the database, so that only the best are transferred. A word in the title or the
# language counts twice; a snippet must share one word. An agent has tens of snippets, so all of them are compared.
FIND_CODE = """
SELECT id, language, title, code, source, created_at FROM (
    SELECT c.*, (
        SELECT count(*) FILTER (WHERE position(word IN lower(c.code)) > 0)
            + 2 * count(*) FILTER (WHERE position(word IN lower(c.title || ' ' || c.language)) > 0)
        FROM unnest(%(words)s::text[]) word
    ) AS shared
    FROM memories_codesnippet c WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s
) found WHERE shared > 0 ORDER BY shared DESC, created_at DESC, id LIMIT %(limit)s
"""

# Write the lexical vectors of memories.
WRITE_LEXICAL = """
UPDATE memories_memory m SET lexical = r.lexical
FROM json_to_recordset(%(rows)s::json) AS r(id uuid, lexical sparsevec)
WHERE m.tenant_id = %(tenant)s AND m.id = r.id AND m.id = ANY(%(ids)s::uuid[])
"""
