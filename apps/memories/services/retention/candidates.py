"""The statements that find memories to forget: the rules of `arbor.memory.forgetting` in SQL.

They look at a narrow index of the agent's memories, and at the table only for what they find.
"""

from __future__ import annotations

#: Weeks after which nothing is left of any importance; beyond, the database's powers underflow.
ENOUGH_WEEKS = 10_000

# `date_part` and not `extract`, whose exact numbers take ten times as long.
_WEEKS = "least(%(enough)s, greatest(0, date_part('epoch', now() - {moment}) / 604800))"
#: Of a memory `m` whose uses are in `a`: what it is, and what has become of its importance.
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
#: What an open goal is tied to is still needed.
NEEDED = """EXISTS (
    SELECT FROM memories_edge e JOIN goals_goal g ON g.tenant_id = e.tenant_id
        AND g.id = CASE e.source_kind WHEN 'goal' THEN e.source_id ELSE e.target_id END
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND g.state IN ('active', 'queued', 'backburner')
        AND (e.source_id = {id} AND e.target_kind = 'goal' OR e.target_id = {id} AND e.source_kind = 'goal')
)"""
# Whatever its use has added, a memory's importance from its making is the least that it can have decayed to.
FADED = f"""
SELECT id FROM (
    SELECT {_USED} FROM memories_memory m {_USES}
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active' AND m.retention <> 'permanent'
        AND m.importance * power(%(kept)s, {_WEEKS.format(moment="m.created_at")}) < %(archive_below)s
        AND m.created_at <= now() - %(grace)s
) held
WHERE touched_at <= now() - %(grace)s
    AND effective * power(%(kept)s, {_WEEKS.format(moment="touched_at")}) < %(archive_below)s
    AND NOT {NEEDED.format(id="held.id")}
ORDER BY importance, created_at, id LIMIT %(step)s
"""  # noqa: S608 (our own parts)
TRIVIAL = f"""
SELECT id FROM (
    SELECT {_USED} FROM memories_memory m {_USES}
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active' AND m.retention <> 'permanent'
        AND m.importance < %(cleanup_below)s AND m.type = 'episodic' AND m.created_at <= now() - %(grace)s
) held
WHERE touched_at <= now() - %(grace)s AND effective < %(cleanup_below)s AND NOT {NEEDED.format(id="held.id")}
ORDER BY importance, created_at, id LIMIT %(step)s
"""  # noqa: S608
# The index has them by importance, and use only adds to it. So whoever of the first `looked` comes, with what use has
# added, no later than the last of them, comes before all that were not looked at.
LEAST = f"""
WITH least AS MATERIALIZED (
    SELECT tenant_id, id, type, importance, created_at FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND retention <> 'permanent'
        AND type = 'episodic'
    ORDER BY importance, created_at, id LIMIT %(looked)s
), last AS (
    SELECT importance, created_at, id FROM least ORDER BY importance DESC, created_at DESC, id DESC LIMIT 1
)
SELECT held.id FROM (SELECT {_USED} FROM least m {_USES}) held, last
WHERE (%(all)s OR (held.effective, held.created_at, held.id) <= (last.importance, last.created_at, last.id))
    AND NOT {NEEDED.format(id="held.id")}
ORDER BY held.effective, held.created_at, held.id LIMIT %(step)s
"""  # noqa: S608

#: All that an agent has in mind, for a plan; what open goals need is found once, not for each.
HELD = """
WITH needed AS MATERIALIZED (
    SELECT CASE e.source_kind WHEN 'goal' THEN e.target_id ELSE e.source_id END AS id
    FROM memories_edge e JOIN goals_goal g ON g.tenant_id = e.tenant_id
        AND g.id = CASE e.source_kind WHEN 'goal' THEN e.source_id ELSE e.target_id END
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND 'goal' IN (e.source_kind, e.target_kind)
        AND g.state IN ('active', 'queued', 'backburner')
)
SELECT m.id, m.type, m.importance, m.retention, m.created_at, m.expires_at, greatest(a.last_at, a.reinforced_at),
    greatest(0, coalesce(a.count, 0) + coalesce(a.reinforced, 0)), m.id IN (SELECT id FROM needed),
    left(m.content, %(glimpse)s), now()
FROM memories_memory m LEFT JOIN memories_memoryaccess a ON a.tenant_id = m.tenant_id AND a.memory_id = m.id
WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active'
ORDER BY m.importance, m.created_at, m.id LIMIT %(most)s
"""
