"""Statements that lock and read the backlogs of several agents, and their rows as values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch, run
from arbor.goals.hierarchy import ChildGoal
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.rows import BacklogRows, GoalRow, IntentRow, PlanRow, StepRow
from arbor.goals.satisfaction import read_experienced
from arbor.goals.values import GoalLayer, GoalSource, GoalState

#: The number of latest closed goals that expected rewards are computed from.
EXPERIENCE_SPAN = 50

_LOCK_AGENTS = """
SELECT id FROM agents_agent WHERE tenant_id = %(tenant)s AND id = ANY(%(agents)s::uuid[])
ORDER BY id FOR NO KEY UPDATE
"""
# In the order of `_goal`.
_OPEN_GOALS = """
SELECT agent_id, id, parent_id, title, description, state, layer, source, fraction, fraction_by_hand, blocked_by,
    blocked_by_goal_id, emotional_valence, expected_reward, effort, deadline, heartbeat_id, rule, touched_at,
    completed_at, abandoned_at, abandonment_reason
FROM goals_goal
WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[]) AND state IN ('active', 'queued', 'backburner')
ORDER BY id FOR UPDATE
"""
#: {source: [mean reward, goals]} of an agent's latest goals that ended; the agent is `a`.
EXPERIENCED = f"""
    SELECT coalesce(json_object_agg(source, json_build_array(mean, goals)), '{{}}') FROM (
        SELECT g.source, avg(e.reward_actual) AS mean, count(*) AS goals FROM (
            SELECT goal_id, reward_actual FROM goals_satisfaction
            WHERE tenant_id = %(tenant)s AND agent_id = a.id ORDER BY at DESC LIMIT {EXPERIENCE_SPAN}
        ) e JOIN goals_goal g ON g.tenant_id = %(tenant)s AND g.id = e.goal_id
        GROUP BY g.source
    ) by_source
"""  # noqa: S608 (our own number)
# Beside the goals: open intents, open plans with their steps, ended parts of open goals, what goals came to. Rows are
# arrays, in the order of `_intent`, `_plan` and `_step`.
_BESIDE = f"""
SELECT a.id,
    (SELECT json_agg(json_build_array(i.id, i.goal_id, i.step_id, i.action, i.description, i.status, i.attempts,
            i.last_error, i.locked_by, i.locked_at, i.ticks_used, i.tick_limit,
            i.status = 'locked' AND EXISTS (
                SELECT FROM heartbeats_heartbeat h WHERE h.tenant_id = %(tenant)s AND h.id = i.locked_by
                    AND h.status IN ('running', 'waiting')
            )) ORDER BY i.id)
        FROM goals_intent i
        WHERE i.tenant_id = %(tenant)s AND i.agent_id = a.id AND i.status IN ('pending', 'locked')),
    (SELECT json_agg(json_build_array(p.id, p.goal_id, p.status, p.dependencies, p.estimated_ticks, p.estimated_cost,
            p.risk, p.reason, (
                SELECT json_agg(json_build_array(s.id, s.position, s.action, s.description, s.precondition,
                    s.postcondition, s.estimated_ticks, s.status) ORDER BY s.position)
                FROM goals_planstep s WHERE s.tenant_id = %(tenant)s AND s.plan_id = p.id
            )) ORDER BY p.id)
        FROM goals_plan p
        WHERE p.tenant_id = %(tenant)s AND p.agent_id = a.id AND p.status IN ('draft', 'active')),
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
"""  # noqa: S608 (our own statement)


def lock_rows(agent_ids: Collection[UUID]) -> dict[UUID, BacklogRows]:
    """Lock the agents and their open goals, each in the order of ids, until the transaction ends; return their backlogs.

    Three statements, however many agents there are.
    """
    agents = list(agent_ids)
    # The agent's row is locked first, because locks on goals do not prevent new ones.
    fetch(_LOCK_AGENTS, agents=agents)
    goals: dict[UUID, dict[UUID, GoalRow]] = {agent_id: {} for agent_id in agents}
    for row in run(_OPEN_GOALS, {"agents": agents, "tenant": current_tenant()}, _all_rows, binary=True):
        goals[row[0]][row[1]] = _goal(row)
    return {
        agent_id: _backlog(agent_id, goals[agent_id], intents, plans, children, experienced)
        for agent_id, intents, plans, children, experienced in fetch(_BESIDE, agents=agents)
    }


def _all_rows(cursor: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


class _Ids(dict[str, UUID]):
    """UUIDs by their text, each made once."""

    def __missing__(self, text: str) -> UUID:
        made = self[text] = UUID(text)
        return made

    def optional(self, text: str | None) -> UUID | None:
        """Return the id of a text, or None."""
        return None if text is None else self[text]


def _backlog(
    agent_id: UUID,
    goals: dict[UUID, GoalRow],
    intents: Sequence[Sequence[Any]] | None,
    plans: Sequence[Sequence[Any]] | None,
    children: Iterable[tuple[str, str, int]] | None,
    experienced: Mapping[str, Any],
) -> BacklogRows:
    ids = _Ids()
    made = [_plan(ids, agent_id, row) for row in plans or ()]
    return BacklogRows(
        goals=goals,
        plans={plan.id: plan for plan in made},
        steps=[
            _step(ids, plan.id, step)
            for plan, row in zip(made, plans or (), strict=True)
            for step in row[8] or ()
        ],
        intents={ids[row[0]]: _intent(ids, agent_id, row) for row in intents or ()},
        held_intents=frozenset(ids[row[0]] for row in intents or () if row[12]),
        ended_children=_ended(children or ()),
        experienced=read_experienced(experienced),
    )


def _goal(row: Sequence[Any]) -> GoalRow:
    (agent_id, id_, parent_id, title, description, state, layer, source, fraction, by_hand, blocked_by) = row[
        :11
    ]
    (blocker_id, valence, reward, effort, deadline, heartbeat_id, rule, touched_at, completed_at) = row[11:20]
    return GoalRow(
        id=id_,
        agent_id=agent_id,
        parent_id=parent_id,
        title=title,
        description=description,
        state=GoalState(state),
        layer=GoalLayer(layer),
        source=GoalSource(source),
        fraction=fraction,
        fraction_by_hand=by_hand,
        blocked_by=blocked_by,
        blocked_by_goal_id=blocker_id,
        emotional_valence=valence,
        expected_reward=reward,
        effort=effort,
        deadline=deadline,
        heartbeat_id=heartbeat_id,
        rule=rule,
        touched_at=touched_at,
        completed_at=completed_at,
        abandoned_at=row[20],
        abandonment_reason=row[21],
    )


def _intent(ids: _Ids, agent_id: UUID, row: Sequence[Any]) -> IntentRow:
    (
        id_,
        goal_id,
        step_id,
        action,
        description,
        status,
        attempts,
        error,
        locked_by,
        locked_at,
        ticks,
        limit,
        _,
    ) = row
    return IntentRow(
        id=ids[id_],
        agent_id=agent_id,
        goal_id=ids[goal_id],
        step_id=ids.optional(step_id),
        action=action,
        description=description,
        status=IntentStatus(status),
        attempts=attempts,
        last_error=error,
        locked_by=ids.optional(locked_by),
        locked_at=None if locked_at is None else datetime.fromisoformat(locked_at),
        ticks_used=ticks,
        tick_limit=limit,
    )


def _plan(ids: _Ids, agent_id: UUID, row: Sequence[Any]) -> PlanRow:
    id_, goal_id, status, dependencies, ticks, cost, risk, reason, _ = row
    return PlanRow(
        id=ids[id_],
        agent_id=agent_id,
        goal_id=ids[goal_id],
        status=PlanStatus(status),
        dependencies=dependencies,
        estimated_ticks=ticks,
        estimated_cost=cost,
        risk=risk,
        reason=reason,
    )


def _step(ids: _Ids, plan_id: UUID, row: Sequence[Any]) -> StepRow:
    id_, position, action, description, precondition, postcondition, ticks, status = row
    return StepRow(
        id=ids[id_],
        plan_id=plan_id,
        position=position,
        action=action,
        description=description,
        precondition=precondition,
        postcondition=postcondition,
        estimated_ticks=ticks,
        status=StepStatus(status),
    )


def _ended(found: Iterable[tuple[str, str, int]]) -> dict[UUID, list[ChildGoal]]:
    children: dict[UUID, list[ChildGoal]] = defaultdict(list)
    for parent_id, state, goals in found:
        children[UUID(parent_id)] += [ChildGoal(state=GoalState(state))] * goals
    return children
