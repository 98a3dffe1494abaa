"""An agent's backlog read for a change: locked, in three statements, whatever there is of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Model

from apps.goals.models import Goal, Intent, Plan, PlanStep
from apps.tenants.scope import APP
from apps.tenants.statements import fetch, fetch_rows
from arbor.goals.hierarchy import Child
from arbor.goals.intents import IntentStatus
from arbor.goals.satisfaction import Experienced
from arbor.goals.values import GoalSource, GoalState

OPEN_STATES = tuple(state for state in GoalState if state.is_open)
OPEN_INTENTS = (IntentStatus.PENDING, IntentStatus.LOCKED)
#: What the latest goals came to is what the next of their source is expected to bring.
EXPERIENCE_SPAN = 50

_LOCK = "SELECT id FROM agents_agent WHERE tenant_id = %(tenant)s AND id = %(agent)s FOR NO KEY UPDATE"
_OPEN_GOALS = "agent_id = %(agent)s AND state IN ('active', 'queued', 'backburner') ORDER BY id FOR UPDATE"
#: {source: [mean reward, goals]} of an agent's latest goals that ended; the agent is `agent` of the values.
EXPERIENCED = f"""
    SELECT coalesce(json_object_agg(source, json_build_array(mean, goals)), '{{}}') FROM (
        SELECT g.source, avg(e.reward_actual) AS mean, count(*) AS goals FROM (
            SELECT goal_id, reward_actual FROM goals_satisfaction
            WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s ORDER BY at DESC LIMIT {EXPERIENCE_SPAN}
        ) e JOIN goals_goal g ON g.tenant_id = %(tenant)s AND g.id = e.goal_id
        GROUP BY g.source
    ) by_source
"""  # noqa: S608 (our own number)
# Beside the goals: intents and plans that are open with their steps, ended children of open goals, what goals came to.
_BESIDE = f"""
SELECT
    (SELECT coalesce(json_agg(i ORDER BY i.id), '[]') FROM (
        SELECT * FROM goals_intent
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status IN ('pending', 'locked')
    ) i),
    (SELECT coalesce(json_agg(p ORDER BY p.id), '[]') FROM (
        SELECT * FROM goals_plan
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status IN ('draft', 'active')
    ) p),
    (SELECT coalesce(json_agg(s ORDER BY s.position), '[]') FROM (
        SELECT step.* FROM goals_planstep step
        JOIN goals_plan p ON p.tenant_id = step.tenant_id AND p.id = step.plan_id
        WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.status IN ('draft', 'active')
    ) s),
    (SELECT coalesce(json_agg(c), '[]') FROM (
        SELECT child.parent_id, child.state, count(*) AS goals FROM goals_goal parent
        JOIN goals_goal child ON child.tenant_id = parent.tenant_id AND child.parent_id = parent.id
            AND child.state IN ('completed', 'abandoned')
        WHERE parent.tenant_id = %(tenant)s AND parent.agent_id = %(agent)s
            AND parent.state IN ('active', 'queued', 'backburner')
        GROUP BY child.parent_id, child.state
    ) c),
    ({EXPERIENCED})
"""  # noqa: S608 (our own statement)


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What is open, by id, and what is known of what has ended."""

    goals: dict[UUID, Goal] = field(default_factory=dict)
    intents: dict[UUID, Intent] = field(default_factory=dict)
    plans: dict[UUID, Plan] = field(default_factory=dict)
    #: Of these plans, in order.
    steps: list[PlanStep] = field(default_factory=list)
    #: Children that ended, by the open goal that they were parts of.
    ended_children: Mapping[UUID, list[Child]] = field(default_factory=dict)
    experienced: Mapping[GoalSource, Experienced] = field(default_factory=dict)


def load(agent_id: UUID) -> Loaded:
    """Lock an agent's backlog until the transaction ends, and read it."""
    # Locked goals cannot keep a new one out, so whoever changes the backlog holds the agent's row first.
    fetch(_LOCK, agent=agent_id)
    goals = fetch_rows(Goal, _OPEN_GOALS, agent=agent_id)
    ((intents, plans, steps, children, experienced),) = fetch(_BESIDE, agent=agent_id)
    return Loaded(
        goals={goal.id: goal for goal in goals},
        intents={each.id: each for each in _rows(Intent, intents)},
        plans={each.id: each for each in _rows(Plan, plans)},
        steps=list(_rows(PlanStep, steps)),
        ended_children=_ended(children),
        experienced=read_experienced(experienced),
    )


def read_experienced(found: Mapping[str, Any]) -> dict[GoalSource, Experienced]:
    """Return what `EXPERIENCED` found, as values."""
    return {
        GoalSource(source): Experienced(mean=mean, goals=goals) for source, (mean, goals) in found.items()
    }


def _ended(found: Iterable[Mapping[str, Any]]) -> dict[UUID, list[Child]]:
    children: dict[UUID, list[Child]] = defaultdict(list)
    for each in found:
        children[UUID(each["parent_id"])] += [Child(state=GoalState(each["state"]))] * each["goals"]
    return children


def _rows[T: Model](model: type[T], found: Iterable[Mapping[str, Any]]) -> Iterable[T]:
    """Return rows that the database wrote as JSON."""
    fields: list[Any] = list(model._meta.concrete_fields)
    names = [each.attname for each in fields]
    for row in found:
        yield model.from_db(APP, names, [_value(each, row[each.column]) for each in fields])


def _value(column: Any, written: Any) -> Any:
    if column.is_relation:
        column = column.target_field
    return written if written is None or isinstance(written, list | dict) else column.to_python(written)
