"""Handwritten statements about backlogs, for heartbeats (`docs/decisions/0005-statements-written-out.md`)."""

from __future__ import annotations

#: The number of latest closed goals that expected rewards are computed from.
EXPERIENCE_SPAN = 50

#: Lock the agents whose backlogs change, before their goals.
LOCK_AGENTS = """
SELECT id FROM agents_agent WHERE tenant_id = %(tenant)s AND id = ANY(%(agents)s::uuid[])
ORDER BY id FOR NO KEY UPDATE
"""
#: Columns in the order of `loading._goal`; fetched in binary format, which is faster. Ordered by agents first: by
#: ids alone, the planner reads all of the tenant's goals in the order of their key.
LOCK_OPEN_GOALS = """
SELECT agent_id, id, parent_id, title, description, state, layer, source, fraction, fraction_by_hand, blocked_by,
    blocked_by_goal_id, emotional_valence, expected_reward, effort, deadline, heartbeat_id, rule, touched_at,
    completed_at, abandoned_at, abandonment_reason, type, priority
FROM goals_goal
WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[]) AND state IN ('active', 'queued', 'backburner')
ORDER BY agent_id, id FOR UPDATE
"""
#: A new task is compared with this number of ended goals, and with open ones that had failures; each has up to FAULTS_READ
#: failed plans and as many failed steps.
ATTEMPTS_READ = 24
FAULTS_READ = 2
#: {source: [mean reward, goals]} of an agent's latest goals that ended; the agent is `a`. Goals are looked up one by one:
#: for a join the planner reads all of the tenant's.
EXPERIENCED = f"""
    SELECT coalesce(json_object_agg(source, json_build_array(mean, goals)), '{{}}') FROM (
        SELECT source, avg(reward_actual) AS mean, count(*) AS goals FROM (
            SELECT (SELECT g.source FROM goals_goal g WHERE g.tenant_id = %(tenant)s AND g.id = e.goal_id) AS source,
                e.reward_actual
            FROM (
                SELECT goal_id, reward_actual FROM goals_satisfaction
                WHERE tenant_id = %(tenant)s AND agent_id = a.id ORDER BY at DESC, id LIMIT {EXPERIENCE_SPAN}
            ) e
        ) ended GROUP BY source
    ) by_source
"""  # noqa: S608 (no external input)
#: The backlogs of agents except the open goals: open intents, open plans with their steps, ended subgoals of open goals, satisfaction by source.
#: Rows are arrays, in the order of `_intent`, `_plan` and `_step` of `loading`. OFFSET 0, and a sub-select of one value instead of EXISTS, as
#: in the situation of goals: the planner would read the rows of all agents.
BACKLOG_DETAILS = f"""
SELECT a.id,
    (SELECT json_agg(json_build_array(i.id, i.goal_id, i.step_id, i.action, i.description, i.status, i.attempts,
            i.last_error, i.locked_by, i.locked_at, i.ticks_used, i.tick_limit,
            i.status = 'locked' AND coalesce((
                SELECT h.status IN ('running', 'waiting') FROM heartbeats_heartbeat h
                WHERE h.tenant_id = %(tenant)s AND h.id = i.locked_by
            ), false), i.procedure_id) ORDER BY i.id)
        FROM (
            SELECT * FROM goals_intent
            WHERE tenant_id = %(tenant)s AND agent_id = a.id AND status IN ('pending', 'locked') OFFSET 0
        ) i),
    (SELECT json_agg(json_build_array(p.id, p.goal_id, p.status, p.dependencies, p.met, p.estimated_ticks, p.estimated_cost,
            p.risk, p.reason, (
                SELECT json_agg(json_build_array(s.id, s.position, s.action, s.description, s.precondition,
                    s.postcondition, s.estimated_ticks, s.status, s.procedure_id) ORDER BY s.position)
                FROM goals_planstep s WHERE s.tenant_id = %(tenant)s AND s.plan_id = p.id
            )) ORDER BY p.id)
        FROM (
            SELECT * FROM goals_plan WHERE tenant_id = %(tenant)s AND agent_id = a.id AND status IN ('draft', 'active') OFFSET 0
        ) p),
    (SELECT json_agg(json_build_array(c.parent_id, c.state, c.goals)) FROM (
        SELECT parent.id AS parent_id, ended.state, ended.goals FROM goals_goal parent CROSS JOIN LATERAL (
            SELECT child.state, count(*) AS goals FROM goals_goal child
            WHERE child.tenant_id = %(tenant)s AND child.parent_id = parent.id
                AND child.state IN ('completed', 'abandoned')
            GROUP BY child.state
        ) ended
        WHERE parent.tenant_id = %(tenant)s AND parent.agent_id = a.id
            AND parent.state IN ('active', 'queued', 'backburner')
    ) c),
    ({EXPERIENCED})
FROM unnest(%(agents)s::uuid[]) AS a (id)
"""  # noqa: S608 (no external input)
#: Earlier goals as arrays, in the order in which `arbor.heartbeat.influence` unpacks them: those that ended last, and open ones after a
#: plan or step of them failed. Read when a task may have arrived: a percept, or an active goal without work. The agent is `a`; goals are
#: looked up one by one, as above, and no EXISTS: the planner would read the tenant's new goals at once.
PAST_ATTEMPTS = f"""
CASE WHEN waiting.percepts > 0 OR (
    SELECT true FROM goals_goal n WHERE n.tenant_id = %(tenant)s AND n.agent_id = a.id AND n.state = 'active' AND n.effort = 0
        AND n.layer <> 'aspiration' LIMIT 1
) THEN (
    SELECT coalesce(json_agg(json_build_array(
        goal.title, left(goal.description, 300), past.outcome, goal.abandonment_reason, past.at, fault.reasons)), '[]')
    FROM (
        (SELECT goal_id, outcome, at FROM goals_satisfaction
            WHERE tenant_id = %(tenant)s AND agent_id = a.id ORDER BY at DESC, id LIMIT {ATTEMPTS_READ})
        UNION ALL
        (SELECT id, 'open', touched_at FROM goals_goal
            WHERE tenant_id = %(tenant)s AND agent_id = a.id AND state IN ('active', 'queued', 'backburner'))
    ) past
    CROSS JOIN LATERAL (
        SELECT title, description, abandonment_reason FROM goals_goal
        WHERE tenant_id = %(tenant)s AND id = past.goal_id LIMIT 1
    ) goal
    CROSS JOIN LATERAL (SELECT ARRAY(
        (SELECT 'a plan was given up: ' || reason FROM goals_plan
            WHERE tenant_id = %(tenant)s AND goal_id = past.goal_id AND status = 'abandoned' AND reason <> ''
            ORDER BY created_at DESC, id LIMIT {FAULTS_READ})
        UNION ALL
        (SELECT action || ' (' || left(description, 100) || '): ' || left(last_error, 300) FROM goals_intent
            WHERE tenant_id = %(tenant)s AND goal_id = past.goal_id AND status IN ('failed', 'abandoned') AND last_error <> ''
            ORDER BY ended_at DESC NULLS LAST, id LIMIT {FAULTS_READ})
    ) AS reasons) fault
    WHERE past.outcome <> 'open' OR cardinality(fault.reasons) > 0
) ELSE '[]' END AS attempts
"""  # noqa: S608 (no external input)
