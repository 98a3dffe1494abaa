"""The goals of agents in situations: columns of the statement that reads a situation, and views of them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.goals.services.queries import EXPERIENCE_SPAN, EXPERIENCED
from apps.memories.services.recall.queries import RECALLED_DETAIL
from apps.tenants.packing import unpack
from apps.tenants.statements import fetch
from arbor.agents.genome import AgentTraits
from arbor.goals.goal_rules import SURVIVAL_PAUSE, GoalRule
from arbor.heartbeat.goal_situation import view_goals, view_plans
from arbor.heartbeat.views import GoalView, PlanView

#: The latest notes of each goal in a situation.
NOTES_SHOWN = 3

#: The belief, memory or aspect that contradicts a goal by a relation, looked up by its id: with a join, a plan made while
#: the table is small would read all of it ever after.
_CONTRADICTION = """
    SELECT against.said FROM (
        SELECT target_id AS id FROM memories_edge WHERE tenant_id = g.tenant_id AND agent_id = g.agent_id
            AND source_id = g.id AND relation = 'contradicts'
        UNION ALL
        SELECT source_id FROM memories_edge WHERE tenant_id = g.tenant_id AND agent_id = g.agent_id
            AND target_id = g.id AND relation = 'contradicts'
    ) other
    CROSS JOIN LATERAL (SELECT coalesce(
        (SELECT statement FROM selves_belief
            WHERE tenant_id = g.tenant_id AND id = other.id AND status <> 'dropped'),
        (SELECT content FROM memories_memory
            WHERE tenant_id = g.tenant_id AND id = other.id AND status = 'active'),
        (SELECT content FROM selves_identityaspect
            WHERE tenant_id = g.tenant_id AND id = other.id AND status <> 'dropped')
    ) AS said) against
    WHERE against.said IS NOT NULL LIMIT 1
"""
#: The memories linked to a goal that were activated within a day.
_RECENTLY_ACTIVATED = """
    SELECT FROM goals_goalmemorylink l
    JOIN memories_activation x ON x.tenant_id = l.tenant_id AND x.memory_id = l.memory_id
    WHERE l.tenant_id = g.tenant_id AND l.goal_id = g.id AND x.at > now() - interval '1 day'
"""
#: `a` is the agent's row, `s` its state. A goal is an array, in the order in which `arbor.heartbeat.goal_situation` unpacks it.
#: OFFSET 0: intents and plans are sorted after they were read. LIMIT 1: a step is read by its key. A sub-select of one value instead of
#: EXISTS: the planner would read all open heartbeats of the tenant at once.
GOAL_COLUMNS = f"""
    (SELECT coalesce(json_agg(json_build_array(
            g.id, g.title, g.description, g.state, g.layer, g.source, g.fraction, g.deadline, g.touched_at, g.parent_id,
            g.expected_reward, g.effort, g.emotional_valence, g.rule, ARRAY(
                SELECT n.text FROM goals_progressnote n WHERE n.tenant_id = g.tenant_id AND n.goal_id = g.id
                ORDER BY n.at DESC, n.id DESC LIMIT %(notes)s
            ),
            CASE WHEN g.blocked_by_goal_id IS NULL THEN g.blocked_by ELSE coalesce((
                SELECT b.title FROM goals_goal b WHERE b.tenant_id = g.tenant_id AND b.id = g.blocked_by_goal_id
                    AND b.state IN ('active', 'queued', 'backburner')
            ), '') END,
            CASE WHEN g.state <> 'backburner' THEN ({_CONTRADICTION}) END,
            g.state = 'queued' AND EXISTS ({_RECENTLY_ACTIVATED}),
            step.intents, step.intents_open, step.intents_done, step.actions, plan.status, plan.reason, g.type, g.priority
        )), '[]')
        FROM goals_goal g
        CROSS JOIN LATERAL (
            SELECT count(*) AS intents, count(*) FILTER (WHERE i.status IN ('pending', 'locked')) AS intents_open,
                count(*) FILTER (WHERE i.status = 'completed') AS intents_done,
                coalesce(array_agg(DISTINCT i.action), '{{}}') AS actions
            FROM goals_intent i WHERE i.tenant_id = g.tenant_id AND i.goal_id = g.id
        ) step
        LEFT JOIN LATERAL (
            SELECT p.status, p.reason FROM goals_plan p
            WHERE p.tenant_id = g.tenant_id AND p.goal_id = g.id AND p.status <> 'draft'
            ORDER BY p.created_at DESC, p.id DESC LIMIT 1
        ) plan ON true
        WHERE g.tenant_id = a.tenant_id AND g.agent_id = a.id AND g.state IN ('active', 'queued', 'backburner')
    ) AS goals,
    (SELECT coalesce(json_agg(intent ORDER BY intent.id), '[]') FROM (
        SELECT i.id, i.goal_id, i.action, i.description, i.status, i.attempts, i.ticks_used, i.tick_limit, i.locked_at,
            i.status = 'locked' AND coalesce((
                SELECT h.status IN ('running', 'waiting') FROM heartbeats_heartbeat h
                WHERE h.tenant_id = i.tenant_id AND h.id = i.locked_by
            ), false) AS held, i.procedure_id, CASE WHEN i.procedure_id IS NOT NULL THEN (
                SELECT json_build_array(m.content, ({RECALLED_DETAIL})::json) FROM memories_memory m
                WHERE m.tenant_id = i.tenant_id AND m.id = i.procedure_id AND m.agent_id = i.agent_id
                    AND m.status = 'active' AND m.type = 'procedural' LIMIT 1
            ) END AS procedure, i.step_id IS NOT NULL AS planned, st.precondition, st.postcondition
        FROM goals_intent i LEFT JOIN LATERAL (
            SELECT precondition, postcondition FROM goals_planstep WHERE tenant_id = i.tenant_id AND id = i.step_id LIMIT 1
        ) st ON true
        WHERE i.tenant_id = a.tenant_id AND i.agent_id = a.id AND i.status IN ('pending', 'locked') OFFSET 0
    ) intent) AS intents,
    (SELECT coalesce(json_agg(plan ORDER BY plan.id), '[]') FROM (
        SELECT p.id, p.goal_id, p.status, p.risk, p.estimated_ticks, p.estimated_cost, p.dependencies, p.met, (
            SELECT coalesce(json_agg(step ORDER BY step.position), '[]') FROM (
                SELECT position, action, description, precondition, postcondition, status FROM goals_planstep
                WHERE tenant_id = p.tenant_id AND plan_id = p.id
            ) step
        ) AS steps
        FROM goals_plan p
        WHERE p.tenant_id = a.tenant_id AND p.agent_id = a.id AND p.status IN ('draft', 'active') OFFSET 0
    ) plan) AS plans,
    s.learned,
    ({EXPERIENCED}) AS experienced
"""  # noqa: S608 (no external input)
#: The input of the goal rules (`arbor.goals.goal_rules`), besides the self and the latest heartbeats. `ended_rules` are the
#: rules of the latest goals that the agent or a person ended: of aspirations at any time, of other goals within a day. A rule that
#: closes its goals itself is among them for some time after it created one.
CIRCUMSTANCE_COLUMNS = f"""
    (SELECT json_build_array(coalesce(sum(successes), 0), coalesce(sum(interactions), 0)) FROM selves_peermodel
        WHERE tenant_id = a.tenant_id AND peer_id = a.id) AS reputation,
    (SELECT json_agg(DISTINCT ended.rule) FROM (
        SELECT (SELECT g.rule FROM goals_goal g WHERE g.tenant_id = a.tenant_id AND g.id = e.goal_id
            AND (g.layer = 'aspiration' OR e.at > now() - interval '1 day')) AS rule
        FROM (
            SELECT goal_id, at FROM goals_satisfaction
            WHERE tenant_id = a.tenant_id AND agent_id = a.id ORDER BY at DESC, id LIMIT {EXPERIENCE_SPAN}
        ) e
        UNION ALL
        SELECT '{GoalRule.SURVIVAL}' WHERE EXISTS (SELECT FROM goals_goal g WHERE g.tenant_id = a.tenant_id AND g.agent_id = a.id
            AND g.rule = '{GoalRule.SURVIVAL}' AND g.created_at > now() - interval '{SURVIVAL_PAUSE.total_seconds():.0f} seconds')
    ) ended WHERE ended.rule <> '') AS ended_rules
"""  # noqa: S608 (no external input)
_OF_AGENTS = f"""
SELECT a.id, {GOAL_COLUMNS} FROM agents_agent a
LEFT JOIN agents_agentstate s ON s.tenant_id = a.tenant_id AND s.agent_id = a.id
WHERE a.tenant_id = %(tenant)s AND a.id = ANY(%(agents)s::uuid[])
"""  # noqa: S608 (no external input)
_NAMES = ("goals", "intents", "plans", "learned", "experienced")


def goal_values() -> dict[str, Any]:
    """Return the parameters of GOAL_COLUMNS, besides the tenant."""
    return {"notes": NOTES_SHOWN}


def load_goals(agent_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
    """Read the goals of each agent, by column name; an unknown agent has no columns. One query."""
    found: dict[UUID, dict[str, Any]] = {agent_id: {} for agent_id in agent_ids}
    for agent_id, *columns in fetch(_OF_AGENTS, agents=list(agent_ids), **goal_values()):
        row = dict(zip(_NAMES, columns, strict=True))
        found[agent_id] = row | {"learned": unpack(row["learned"]) if row["learned"] else {}}
    return found


def goal_views(*, agent_id: UUID, traits: AgentTraits | None, now: datetime) -> list[GoalView]:
    """Return the open goals, most important first. One query."""
    return view_goals(load_goals([agent_id])[agent_id], traits=traits, now=now)["goals"]


def plan_views(*, agent_id: UUID) -> list[PlanView]:
    """Return the active plans and drafts. One query."""
    return view_plans(load_goals([agent_id])[agent_id])
