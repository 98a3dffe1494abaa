"""What a change of the backlog is going to write: collected in memory, written at once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from apps.goals.models import Goal, Intent, Plan, PlanStep, ProgressNote, Satisfaction
from apps.heartbeats.models import Percept
from apps.tenants.statements import write_rows

type Row = Goal | Plan | PlanStep | Intent | ProgressNote | Satisfaction | Percept

_FIELDS: Mapping[type[Row], tuple[str, ...]] = MappingProxyType(
    {
        Goal: (
            "parent_id",
            "description",
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
        ),
        Plan: (
            "status",
            "dependencies",
            "estimated_ticks",
            "estimated_cost",
            "risk",
            "reason",
            "ended_at",
        ),
        PlanStep: ("status",),
        Intent: ("status", "attempts", "last_error", "locked_by", "locked_at", "ticks_used", "ended_at"),
    }
)
_KINDS = (Goal, Plan, PlanStep, Intent, ProgressNote, Satisfaction, Percept)


class Unit:
    """Rows that are new, and rows that changed."""

    def __init__(self) -> None:
        self._new: dict[UUID, Row] = {}
        self._changed: dict[UUID, Row] = {}

    def new(self, row: Row) -> None:
        """Let a row be inserted."""
        self._new[row.id] = row

    def changed(self, row: Row) -> None:
        """Let a row be updated, if it is not new anyway."""
        self._changed[row.id] = row

    def save(self) -> None:
        """Write everything, by at most two statements."""
        changed = [row for key, row in self._changed.items() if key not in self._new]
        write_rows(
            [[row for row in self._new.values() if isinstance(row, kind)] for kind in _KINDS],
            [([row for row in changed if isinstance(row, kind)], fields) for kind, fields in _FIELDS.items()],
        )
        self._new.clear()
        self._changed.clear()
