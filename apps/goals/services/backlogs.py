"""Lock, load and save the backlogs of several agents of a tenant at once.

All functions run in a tenant's transaction; a loaded backlog stays locked until the transaction ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import structlog
from django.db.models import Model

from apps.agents.models import Percept
from apps.goals.models import Goal, Intent, Plan, PlanStep, ProgressNote, Satisfaction
from apps.goals.services.loading import lock_rows
from apps.signals.services.emission import emit
from apps.tenants.statements import write_values
from arbor.goals.backlog import Backlog
from arbor.goals.backlog_signals import signals_of_backlog
from arbor.goals.rows import (
    BacklogChanges,
    BacklogRows,
    GoalClosed,
    GoalRow,
    IntentRow,
    NoteRow,
    PerceptRow,
    PlanRow,
    Row,
    SatisfactionRow,
    StepRow,
)

log = structlog.get_logger(__name__)

#: Columns that a change of the backlog may write; the others never change.
_GOAL_CHANGES = (
    "id",
    "parent_id",
    "state",
    "fraction",
    "fraction_by_hand",
    "blocked_by",
    "blocked_by_goal_id",
    "effort",
    "emotional_valence",
    "deadline",
    "touched_at",
    "completed_at",
    "abandoned_at",
    "abandonment_reason",
)
_PLAN_CHANGES = (
    "id",
    "status",
    "dependencies",
    "met",
    "estimated_ticks",
    "estimated_cost",
    "risk",
    "reason",
    "ended_at",
)
_STEP_CHANGES = ("id", "status")
_INTENT_CHANGES = (
    "id",
    "status",
    "attempts",
    "last_error",
    "locked_by",
    "locked_at",
    "ticks_used",
    "ended_at",
)


def load_backlogs(agents: Mapping[UUID, UUID | None], *, now: datetime) -> dict[UUID, Backlog]:
    """Lock and load the backlogs of agents; the values are the heartbeats that change them, or None for a person.

    Three statements for any number of agents; none without agents.
    """
    if not agents:
        return {}
    rows = lock_rows(agents)
    return {
        agent_id: Backlog(agent_id, rows.get(agent_id, BacklogRows()), now=now, heartbeat_id=heartbeat_id)
        for agent_id, heartbeat_id in agents.items()
    }


def lock_backlog(agent_id: UUID, *, now: datetime, heartbeat_id: UUID | None = None) -> Backlog:
    """Lock and load one agent's backlog. Three statements."""
    return load_backlogs({agent_id: heartbeat_id}, now=now)[agent_id]


def save_backlogs(backlogs: Iterable[Backlog]) -> None:
    """Save the changes of backlogs by at most two statements, and their signals."""
    saved = list(backlogs)
    save_changes([backlog.changes() for backlog in saved])
    for backlog in saved:
        backlog.mark_saved()


def save_backlog(backlog: Backlog) -> None:
    """Save the changes of a backlog by at most two statements, and its signals."""
    save_backlogs([backlog])


def save_changes(changes: Sequence[BacklogChanges]) -> None:
    """Save changes of several backlogs by at most two statements, log the closed goals, and emit the signals."""
    if not any(changes):
        return
    write_values(_inserted(changes), _updated(changes))
    emit(*(signal for change in changes for signal in signals_of_backlog(change)))
    for change in changes:
        for closed in change.closed:
            _log_closed(closed)


def _inserted(changes: Sequence[BacklogChanges]) -> list[tuple[type[Model], list[dict[str, Any]]]]:
    return [
        (Goal, [_new(row, created_at=change.at) for change in changes for row in change.new_goals]),
        (Plan, [_new(row, created_at=change.at) for change in changes for row in change.new_plans]),
        (PlanStep, [_new(row) for change in changes for row in change.new_steps]),
        (Intent, [_new(row, created_at=change.at) for change in changes for row in change.new_intents]),
        (ProgressNote, [_new(row, at=change.at) for change in changes for row in change.notes]),
        (Satisfaction, [_new(row, at=change.at) for change in changes for row in change.satisfactions]),
        (Percept, [_new(row, at=change.at) for change in changes for row in change.percepts]),
    ]


def _updated(changes: Sequence[BacklogChanges]) -> list[tuple[type[Model], list[dict[str, Any]]]]:
    return [
        (Goal, [_values(row, _GOAL_CHANGES) for change in changes for row in change.changed_goals]),
        (Plan, [_values(row, _PLAN_CHANGES) for change in changes for row in change.changed_plans]),
        (PlanStep, [_values(row, _STEP_CHANGES) for change in changes for row in change.changed_steps]),
        (Intent, [_values(row, _INTENT_CHANGES) for change in changes for row in change.changed_intents]),
    ]


def _new(row: Row, **times: datetime) -> dict[str, Any]:
    return _values(row, _COLUMNS[type(row)]) | times


def _values(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    return {column: getattr(row, column) for column in columns}


_COLUMNS: Mapping[type[Any], tuple[str, ...]] = MappingProxyType(
    {
        kind: tuple(field.name for field in fields(kind))
        for kind in (GoalRow, PlanRow, StepRow, IntentRow, NoteRow, SatisfactionRow, PerceptRow)
    }
)


def _log_closed(closed: GoalClosed) -> None:
    """Log a closed goal with its satisfaction."""
    satisfaction = closed.satisfaction
    log.info(
        "goal_closed",
        goal_id=str(closed.goal_id),
        state=closed.state.value,
        outcome=satisfaction.outcome.value,
        reward=satisfaction.reward_actual,
        expected=round(satisfaction.reward_expected, 3),
        novelty=satisfaction.novelty,
        effort=satisfaction.effort,
    )
