"""SQL statements of retention: the buffer, the rules of forgetting, and purges.

The rules scan a narrow index of the agent's memories, and read the table only for candidates.
"""

from __future__ import annotations

from apps.tenants.packing import sql_literal
from arbor.memory.buffer import PROMOTION_ACCESSES, PROMOTION_IMPORTANCE

# The most weeks of decay, after which any importance is 0; with more, PostgreSQL's `power` would underflow.
MAX_WEEKS = 10_000

# Part: the weeks since a moment. `date_part` rather than `extract`, whose numeric arithmetic takes ten times as long.
_WEEKS = "least(%(most_weeks)s, greatest(0, date_part('epoch', now() - {moment}) / 604800))"

# Part: a memory `m` with the importance raised by its uses, from _USES.
_USED = """
    m.id, m.type, m.importance, m.created_at, uses.touched_at,
    m.importance + (1 - m.importance) * least(1, %(boost)s * ln(1 + uses.uses)) AS effective
""".strip()

_USES = """
LEFT JOIN memories_memoryaccess a ON a.tenant_id = m.tenant_id AND a.memory_id = m.id
CROSS JOIN LATERAL (
    SELECT greatest(0, coalesce(a.count, 0) + coalesce(a.reinforced, 0))::float8 AS uses,
        greatest(m.created_at, a.last_at, a.reinforced_at) AS touched_at
) uses
"""

# Part: an open goal needs the memory, by a relation or by the heartbeat that worked on it.
_NEEDED = """(EXISTS (
    SELECT FROM memories_edge e JOIN goals_goal g ON g.tenant_id = e.tenant_id
        AND g.id = CASE e.source_kind WHEN 'goal' THEN e.source_id ELSE e.target_id END
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND g.state IN ('active', 'queued', 'backburner')
        AND (e.source_id = {id} AND e.target_kind = 'goal' OR e.target_id = {id} AND e.source_kind = 'goal')
) OR EXISTS (
    SELECT FROM goals_goalmemorylink l JOIN goals_goal g ON g.tenant_id = l.tenant_id AND g.id = l.goal_id
    WHERE l.tenant_id = %(tenant)s AND l.memory_id = {id} AND g.state IN ('active', 'queued', 'backburner')
))"""

# Find faded memories (`arbor.memory.forgetting`). The inner condition on importance is a bound that needs no uses: a memory that
# has not faded without any use, since its creation, has not faded with uses.
FADED_MEMORIES = f"""
SELECT id FROM (
    SELECT {_USED} FROM memories_memory m {_USES}
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active' AND m.retention <> 'permanent'
        AND m.importance * power(%(retained)s, {_WEEKS.format(moment="m.created_at")}) < %(archive_below)s
        AND m.created_at <= now() - %(grace)s
) candidate
WHERE touched_at <= now() - %(grace)s
    AND effective * power(%(retained)s, {_WEEKS.format(moment="touched_at")}) < %(archive_below)s
    AND NOT {_NEEDED.format(id="candidate.id")}
ORDER BY importance, created_at, id LIMIT %(step)s
"""  # noqa: S608 (no external input)

# Find episodic memories of little importance that use has not raised.
TRIVIAL_MEMORIES = f"""
SELECT id FROM (
    SELECT {_USED} FROM memories_memory m {_USES}
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active' AND m.retention <> 'permanent'
        AND m.importance < %(cleanup_below)s AND m.type = 'episodic' AND m.created_at <= now() - %(grace)s
) candidate
WHERE touched_at <= now() - %(grace)s AND effective < %(cleanup_below)s AND NOT {_NEEDED.format(id="candidate.id")}
ORDER BY importance, created_at, id LIMIT %(step)s
"""  # noqa: S608

# Find the least important memories of a type, reading only the first `candidates` by stored importance. Use only raises importance,
# so a memory whose raised importance is at most the stored importance of the last candidate ranks before all memories that were not
# read.
LEAST_IMPORTANT = f"""
WITH least AS MATERIALIZED (
    SELECT tenant_id, id, type, importance, created_at FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND retention <> 'permanent'
        AND type = %(type)s
    ORDER BY importance, created_at, id LIMIT %(candidates)s
), last AS (
    SELECT importance, created_at, id FROM least ORDER BY importance DESC, created_at DESC, id DESC LIMIT 1
)
SELECT candidate.id FROM (SELECT {_USED} FROM least m {_USES}) candidate, last
WHERE (%(all)s OR (candidate.effective, candidate.created_at, candidate.id) <= (last.importance, last.created_at, last.id))
    AND NOT {_NEEDED.format(id="candidate.id")}
ORDER BY candidate.effective, candidate.created_at, candidate.id LIMIT %(step)s
"""  # noqa: S608

# Read an agent's active memories for a plan. The memories that open goals need are found once, not for each memory.
MEMORIES_TO_PLAN = """
WITH needed AS MATERIALIZED (
    SELECT CASE e.source_kind WHEN 'goal' THEN e.target_id ELSE e.source_id END AS id
    FROM memories_edge e JOIN goals_goal g ON g.tenant_id = e.tenant_id
        AND g.id = CASE e.source_kind WHEN 'goal' THEN e.source_id ELSE e.target_id END
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND 'goal' IN (e.source_kind, e.target_kind)
        AND g.state IN ('active', 'queued', 'backburner')
    UNION
    SELECT l.memory_id FROM goals_goal g JOIN goals_goalmemorylink l ON l.tenant_id = g.tenant_id AND l.goal_id = g.id
    WHERE g.tenant_id = %(tenant)s AND g.agent_id = %(agent)s AND g.state IN ('active', 'queued', 'backburner')
)
SELECT m.id, m.type, m.importance, m.retention, m.created_at, m.expires_at, greatest(a.last_at, a.reinforced_at),
    greatest(0, coalesce(a.count, 0) + coalesce(a.reinforced, 0)), m.id IN (SELECT id FROM needed),
    left(m.content, %(excerpt_length)s), now()
FROM memories_memory m LEFT JOIN memories_memoryaccess a ON a.tenant_id = m.tenant_id AND a.memory_id = m.id
WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active'
ORDER BY m.importance, m.created_at, m.id LIMIT %(most)s
"""

# Count an agent's memories by type for people. A pin older than `unused_after` is unused if its memory was not recalled since.
COUNT_BY_TYPE = """
SELECT m.type, count(*) FILTER (WHERE m.status = 'active'), count(*) FILTER (WHERE m.status = 'archived'),
    count(*) FILTER (WHERE m.status = 'active' AND m.retention = 'permanent'),
    count(*) FILTER (WHERE m.status = 'active' AND p.memory_id IS NOT NULL),
    count(*) FILTER (WHERE m.status = 'active' AND p.pinned_at <= now() - %(unused_after)s
        AND coalesce(a.last_at < p.pinned_at, true))
FROM memories_memory m
LEFT JOIN memories_pin p ON p.tenant_id = m.tenant_id AND p.memory_id = m.id
LEFT JOIN memories_memoryaccess a ON a.tenant_id = p.tenant_id AND a.memory_id = p.memory_id
WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s
GROUP BY m.type
"""

# Find agents for a job run: those whose last run of a rule is a day ago.
MINDS_DUE = (
    "SELECT agent_id FROM memories_mind WHERE tenant_id = t.id"
    # A time in the future was written before a clock was set back.
    " AND ({checked_at} IS NULL OR {checked_at} NOT BETWEEN now() - interval '1 day' AND now())"
)

# Acquire an advisory lock if it is free, which the ORM cannot express.
TRY_LOCK_MIND = "SELECT pg_try_advisory_xact_lock(%(key)s)"

# Find agents for a job run: those of the 1,000 memories that expired first. Agents already visited are excluded inside, so that
# they cannot fill the limit.
AGENTS_WITH_EXPIRED = """
SELECT DISTINCT agent_id FROM (
    SELECT agent_id FROM memories_memory
    WHERE tenant_id = t.id AND expires_at <= now() AND status = 'active' AND agent_id <> ALL(%(passed)s::uuid[])
    ORDER BY expires_at LIMIT 1000
) expired
"""

# Empty model calls about purged memories, because prompts and replies repeat their text: calls about memories, about their
# episode, or about conversations that contain or recalled them. Open calls end; jobs create new calls without these memories.
# A reply locks its call before the mind, so a purge locks the calls first.
_CALLS_ABOUT = """
WHERE c.tenant_id = %(tenant)s AND c.agent_id IN (
    SELECT agent_id FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
) AND c.subject_key <> '' AND (
    c.subject -> 'memories' ?| %(id_texts)s::text[]
    OR c.subject ->> 'episode' IN (
        SELECT episode_id::text FROM memories_memory
        WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[]) AND episode_id IS NOT NULL
    )
    OR 'chat:' || (c.subject ->> 'chat') IN (
        SELECT session FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
    )
    OR EXISTS (
        SELECT FROM jsonb_array_elements(c.subject -> 'recalled') recalled
        WHERE recalled ->> 'id' = ANY(%(id_texts)s::text[])
    )
)
"""
LOCK_CALLS = f"""
SELECT c.id FROM calls_externalcall c {_CALLS_ABOUT} ORDER BY c.id FOR UPDATE
"""  # noqa: S608 (no external input)
EMPTY_CALLS = f"""
UPDATE calls_externalcall c SET request = {sql_literal({})}, reply = {sql_literal("")}, error = '', dropped = '[]'::jsonb,
    sections = {sql_literal([])},
    status = CASE WHEN c.status IN ('pending', 'running') THEN 'retried' ELSE c.status END,
    ended_at = coalesce(c.ended_at, now()), due_at = NULL, lease_until = NULL
{_CALLS_ABOUT}
"""  # noqa: S608 (no external input)

# Empty the turns of conversations from which purged memories were stored: they have the same text.
EMPTY_TURNS = """
UPDATE contacts_chatmessage t SET content = '', detail = '{}'::jsonb, error = 'purged'
FROM memories_memory m
WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[]) AND m.session LIKE 'chat:%%'
    AND t.tenant_id = m.tenant_id AND t.session_id::text = substr(m.session, 6) AND t.content = m.content
"""

# Count reinforcements of a batch of heartbeats: existing rows first, then new ones, each in the order of ids, as RAISE_ACTIVATIONS
# writes them.
REINFORCE = """
WITH reinforced AS MATERIALIZED (
    SELECT r.id, r.times FROM unnest(%(ids)s::uuid[], %(times)s::int[]) AS r(id, times) ORDER BY r.id
), used AS (
    UPDATE memories_memoryaccess used SET reinforced = used.reinforced + r.times, reinforced_at = now()
    FROM reinforced r
    WHERE used.tenant_id = %(tenant)s AND used.memory_id = r.id AND used.memory_id = ANY(%(ids)s::uuid[])
    RETURNING used.memory_id
)
INSERT INTO memories_memoryaccess AS used (tenant_id, memory_id, count, reinforced, reinforced_at)
SELECT %(tenant)s, id, 0, times, now() FROM reinforced WHERE id NOT IN (SELECT memory_id FROM used) ORDER BY id
ON CONFLICT (tenant_id, memory_id) DO UPDATE
SET reinforced = used.reinforced + EXCLUDED.reinforced, reinforced_at = EXCLUDED.reinforced_at
"""

# Fill the buffers of a batch of heartbeats. An item that is added again gets the later expiry, the higher importance, and the more
# trusted of the two speakers with the higher trust. To make room, promoted items of an agent are deleted first, then the least important, then the oldest.
ADD_TO_BUFFER = """
WITH incoming AS MATERIALIZED (
    SELECT r.*, decode(content_digest, 'hex') AS content_hash FROM json_to_recordset(%(rows)s::json) AS r(
        agent uuid, id uuid, content text, content_digest text, role text, importance float8, trust float8, source text,
        lexical sparsevec, lasts float8
    )
), room AS (
    SELECT agent, %(capacity)s - count(*) AS places FROM incoming GROUP BY agent
), cleared AS (
    DELETE FROM memories_bufferitem b USING (
        SELECT o.id FROM (
            SELECT id, agent_id, row_number() OVER (
                PARTITION BY agent_id ORDER BY promoted_to_id IS NULL DESC, importance DESC, created_at DESC, id
            ) AS place
            FROM memories_bufferitem
            WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
                AND (agent_id, content_hash) NOT IN (SELECT agent, content_hash FROM incoming)
        ) o JOIN room ON room.agent = o.agent_id WHERE o.place > room.places
    ) extra
    WHERE b.tenant_id = %(tenant)s AND b.agent_id = ANY(%(agents)s::uuid[]) AND b.id = extra.id RETURNING b.agent_id, b.promoted_to_id
), stored AS (
    INSERT INTO memories_bufferitem AS b (tenant_id, agent_id, id, content, content_hash, role, importance, trust, source,
        lexical, embedding_model, accesses, created_at, expires_at)
    SELECT %(tenant)s, agent, id, content, content_hash, role, importance, trust, source, lexical, '', 0, now(),
        now() + lasts * interval '1 second'
    FROM incoming ORDER BY agent, content_hash
    ON CONFLICT (tenant_id, agent_id, content_hash) DO UPDATE
    SET expires_at = greatest(b.expires_at, EXCLUDED.expires_at),
        importance = greatest(b.importance, EXCLUDED.importance),
        role = CASE WHEN EXCLUDED.trust > b.trust THEN EXCLUDED.role ELSE b.role END,
        lexical = CASE WHEN EXCLUDED.trust > b.trust THEN EXCLUDED.lexical ELSE b.lexical END,
        trust = greatest(b.trust, EXCLUDED.trust)
    RETURNING b.agent_id, b.id, b.content_hash
)
SELECT agent_id, id, content_hash,
    (SELECT count(*) FROM cleared WHERE cleared.agent_id = stored.agent_id AND promoted_to_id IS NULL)
FROM stored
"""

# Search the buffers of a batch of heartbeats. The vector of a search counts only if it is comparable with the agent's vectors
# (`embedding.queries.QUERY_VECTOR`).
SEARCH_BUFFER = """
WITH search AS MATERIALIZED (
    SELECT r.place, r.agent, r.lexical, r.near, r.shared, r.most, r.counts,
        CASE WHEN k.agent_id IS NULL OR (k.embedding_dimension = r.dimension
            AND k.embedding_model = coalesce(r.model, k.embedding_model)) THEN r.vector END AS vector
    FROM json_to_recordset(%(searches)s::json) AS r(
        place int, agent uuid, lexical sparsevec, near float8, shared float8, most int, counts bool,
        vector halfvec, dimension int, model text
    ) LEFT JOIN memories_mind k
        ON k.tenant_id = %(tenant)s AND k.agent_id = ANY(%(agents)s::uuid[]) AND k.agent_id = r.agent
), chosen AS MATERIALIZED (
    SELECT s.place, s.counts, found.* FROM search s CROSS JOIN LATERAL (
        SELECT *, meaning + words AS score FROM (
            SELECT id, content, role, source, importance, accesses, created_at, expires_at, trust,
                coalesce(CASE WHEN vector_dims(embedding) = vector_dims(s.vector)
                    THEN -(embedding <#> s.vector) END, 0) AS meaning,
                coalesce(-(lexical <#> s.lexical), 0) AS words
            FROM memories_bufferitem
            WHERE tenant_id = %(tenant)s AND agent_id = s.agent AND expires_at > now() AND promoted_to_id IS NULL
        ) scored WHERE meaning >= s.near OR words >= s.shared
        ORDER BY meaning + words DESC, created_at DESC, id LIMIT s.most
    ) found
), touched AS MATERIALIZED (
    SELECT b.id, counted.times FROM memories_bufferitem b
    JOIN (SELECT id, count(*) AS times FROM chosen WHERE counts GROUP BY id) counted ON counted.id = b.id
    WHERE b.tenant_id = %(tenant)s AND b.id = ANY((SELECT array_agg(id) FROM chosen)::uuid[])
    ORDER BY b.id FOR UPDATE OF b
), accessed AS (
    UPDATE memories_bufferitem b SET accesses = b.accesses + touched.times
    FROM touched WHERE b.tenant_id = %(tenant)s AND b.id = touched.id AND b.id = ANY(ARRAY(SELECT id FROM touched))
)
SELECT place, id, content, role, source, importance, accesses + counts::int, created_at, expires_at, score, trust
FROM chosen ORDER BY place, score DESC, created_at DESC, id
"""

# Literal numbers, as in the condition of the partial index `memories_buffer_mattering`, so that the planner uses it.
_MATTERS = (
    f"promoted_to_id IS NULL AND (importance >= {PROMOTION_IMPORTANCE} OR accesses >= {PROMOTION_ACCESSES})"
)

# Find agents for a job run: those with buffer items that expired or matter.
AGENTS_WITH_BUFFER_WORK = f"""
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND expires_at <= now()
UNION
SELECT agent_id FROM memories_bufferitem WHERE tenant_id = t.id AND {_MATTERS}
"""  # noqa: S608
