"""Lock and read the rows of the backlogs of several agents, as values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.goals.services.queries import BACKLOG_DETAILS, LOCK_AGENTS, LOCK_OPEN_GOALS
from apps.tenants.scope import current_tenant
from apps.tenants.statements import all_rows, fetch, run
from arbor.goals.hierarchy import ChildGoal
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.rows import BacklogRows, GoalRow, IntentRow, PlanRow, StepRow
from arbor.goals.satisfaction import read_experienced
from arbor.goals.values import GoalLayer, GoalSource, GoalState, GoalType

#: The column of an intent in BACKLOG_DETAILS that says whether the heartbeat that locked it still runs or waits.
_INTENT_IS_RUNNING = 12


def lock_rows(agent_ids: Collection[UUID]) -> dict[UUID, BacklogRows]:
    """Lock agents and their open goals, in the order of ids, and return their backlogs.

    The locks last until the transaction ends. Executes three statements, whatever the number of agents.
    """
    agents = list(agent_ids)
    # The agent's row is locked first, because locks on goals do not prevent the insertion of goals.
    fetch(LOCK_AGENTS, agents=agents)
    goals: dict[UUID, dict[UUID, GoalRow]] = {agent_id: {} for agent_id in agents}
    for row in run(LOCK_OPEN_GOALS, {"agents": agents, "tenant": current_tenant()}, all_rows, binary=True):
        goals[row[0]][row[1]] = _goal(row)
    return {
        details[0]: _backlog(goals[details[0]], details) for details in fetch(BACKLOG_DETAILS, agents=agents)
    }


class _Ids(dict[str, UUID]):
    """Cache of UUIDs by their text."""

    def __missing__(self, text: str) -> UUID:
        uuid = self[text] = UUID(text)
        return uuid

    def optional(self, text: str | None) -> UUID | None:
        """Return the UUID of a text; None for None."""
        return None if text is None else self[text]


def _backlog(goals: dict[UUID, GoalRow], details: Sequence[Any]) -> BacklogRows:
    """Return an agent's backlog from its open goals and its row of BACKLOG_DETAILS."""
    agent_id, intents, plans, children, experienced = details
    ids = _Ids()
    plan_rows = [_plan(ids, agent_id, row) for row in plans or ()]
    return BacklogRows(
        goals=goals,
        plans={plan.id: plan for plan in plan_rows},
        steps=[
            _step(ids, plan.id, step)
            for plan, row in zip(plan_rows, plans or (), strict=True)
            for step in row[-1] or ()
        ],
        intents={ids[row[0]]: _intent(ids, agent_id, row) for row in intents or ()},
        running_intents=frozenset(ids[row[0]] for row in intents or () if row[_INTENT_IS_RUNNING]),
        ended_children=_ended(children or ()),
        experienced=read_experienced(experienced),
    )


def _goal(row: Sequence[Any]) -> GoalRow:
    """Return a goal from a row of LOCK_OPEN_GOALS."""
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
        type=GoalType(row[22]),
        priority=row[23],
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
        procedure_id,
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
        procedure_id=ids.optional(procedure_id),
    )


def _plan(ids: _Ids, agent_id: UUID, row: Sequence[Any]) -> PlanRow:
    id_, goal_id, status, dependencies, met, ticks, cost, risk, reason, _ = row
    return PlanRow(
        id=ids[id_],
        agent_id=agent_id,
        goal_id=ids[goal_id],
        status=PlanStatus(status),
        dependencies=dependencies,
        met=met,
        estimated_ticks=ticks,
        estimated_cost=cost,
        risk=risk,
        reason=reason,
    )


def _step(ids: _Ids, plan_id: UUID, row: Sequence[Any]) -> StepRow:
    id_, position, action, description, precondition, postcondition, ticks, status, procedure_id = row
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
        procedure_id=ids.optional(procedure_id),
    )


def _ended(rows: Iterable[tuple[str, str, int]]) -> dict[UUID, list[ChildGoal]]:
    """Return the closed children by parent; a row has a parent's id, a state and the number of its children in that state."""
    children: dict[UUID, list[ChildGoal]] = defaultdict(list)
    for parent_id, state, count in rows:
        children[UUID(parent_id)] += [ChildGoal(state=GoalState(state))] * count
    return children
