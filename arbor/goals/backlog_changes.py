"""The pending writes of a backlog: new and changed rows, and the goals that were closed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from arbor.goals.rows import GoalRow, IntentRow, NoteRow, PerceptRow, PlanRow, SatisfactionRow, StepRow
from arbor.goals.values import GoalState

type Row = GoalRow | PlanRow | StepRow | IntentRow | NoteRow | SatisfactionRow | PerceptRow


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalClosed:
    """A goal that was closed, with its satisfaction: for the log."""

    goal_id: UUID
    state: GoalState
    signal: SatisfactionRow


@dataclass(frozen=True, kw_only=True, slots=True)
class BacklogChanges:
    """Rows of one agent's backlog to write, in the order of their creation; false if there are none."""

    agent_id: UUID
    #: The creation time of the new rows.
    at: datetime
    new_goals: tuple[GoalRow, ...] = ()
    new_plans: tuple[PlanRow, ...] = ()
    new_steps: tuple[StepRow, ...] = ()
    new_intents: tuple[IntentRow, ...] = ()
    notes: tuple[NoteRow, ...] = ()
    satisfactions: tuple[SatisfactionRow, ...] = ()
    percepts: tuple[PerceptRow, ...] = ()
    changed_goals: tuple[GoalRow, ...] = ()
    changed_plans: tuple[PlanRow, ...] = ()
    changed_steps: tuple[StepRow, ...] = ()
    changed_intents: tuple[IntentRow, ...] = ()
    closed: tuple[GoalClosed, ...] = ()

    def __bool__(self) -> bool:
        """Return whether there is anything to write."""
        return any(
            (
                self.new_goals,
                self.new_plans,
                self.new_steps,
                self.new_intents,
                self.notes,
                self.satisfactions,
                self.percepts,
                self.changed_goals,
                self.changed_plans,
                self.changed_steps,
                self.changed_intents,
            )
        )


class ChangeLog:
    """Collects the rows that one unit of work creates and changes."""

    def __init__(self) -> None:
        self._new: dict[UUID, Row] = {}
        self._changed: dict[UUID, Row] = {}
        self._closed: list[GoalClosed] = []

    def new(self, row: Row) -> None:
        """Record a row to be inserted."""
        self._new[row.id] = row

    def changed(self, row: Row) -> None:
        """Record a row to be updated, unless it is new anyway."""
        if row.id not in self._new:
            self._changed[row.id] = row

    def closed(self, goal: GoalRow, signal: SatisfactionRow) -> None:
        """Record a closed goal with its satisfaction."""
        self._closed.append(GoalClosed(goal_id=goal.id, state=goal.state, signal=signal))

    def changes(self, *, agent_id: UUID, at: datetime) -> BacklogChanges:
        """Return everything recorded since the log was cleared."""
        if not (self._new or self._changed):
            return BacklogChanges(agent_id=agent_id, at=at)
        new, changed = list(self._new.values()), list(self._changed.values())
        return BacklogChanges(
            agent_id=agent_id,
            at=at,
            new_goals=_of(GoalRow, new),
            new_plans=_of(PlanRow, new),
            new_steps=_of(StepRow, new),
            new_intents=_of(IntentRow, new),
            notes=_of(NoteRow, new),
            satisfactions=_of(SatisfactionRow, new),
            percepts=_of(PerceptRow, new),
            changed_goals=_of(GoalRow, changed),
            changed_plans=_of(PlanRow, changed),
            changed_steps=_of(StepRow, changed),
            changed_intents=_of(IntentRow, changed),
            closed=tuple(self._closed),
        )

    def clear(self) -> None:
        """Clear the log after its rows were saved."""
        self._new.clear()
        self._changed.clear()
        self._closed.clear()


def _of[R](kind: type[R], rows: list[Row]) -> tuple[R, ...]:
    return tuple(row for row in rows if type(row) is kind)
