"""Rows of a backlog as plain values: goals, plans, steps, intents, notes, satisfactions, percepts.

The names are those of the tables' columns. The rows that a `Backlog` returns are those that it saves: later calls change
them in place. Rows have no creation time: a new row gets the time of the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from arbor.goals.hierarchy import ChildGoal
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.satisfaction import ExperiencedReward, GoalOutcome
from arbor.goals.values import DEFAULT_PRIORITY, GoalLayer, GoalSource, GoalState, GoalType


@dataclass(kw_only=True, slots=True)
class GoalRow:
    """A goal; the columns are described at `apps.goals.models.Goal`."""

    id: UUID
    agent_id: UUID
    title: str
    state: GoalState
    layer: GoalLayer
    source: GoalSource
    touched_at: datetime
    type: GoalType = GoalType.ACHIEVE
    priority: int = DEFAULT_PRIORITY
    description: str = ""
    parent_id: UUID | None = None
    fraction: float = 0.0
    fraction_by_hand: bool = False
    blocked_by: str = ""
    blocked_by_goal_id: UUID | None = None
    emotional_valence: float = 0.0
    expected_reward: float | None = None
    effort: int = 0
    deadline: datetime | None = None
    heartbeat_id: UUID | None = None
    rule: str = ""
    completed_at: datetime | None = None
    abandoned_at: datetime | None = None
    abandonment_reason: str = ""


@dataclass(kw_only=True, slots=True)
class PlanRow:
    """A plan of a goal, without its steps."""

    id: UUID
    agent_id: UUID
    goal_id: UUID
    status: PlanStatus
    dependencies: list[str] = field(default_factory=list)
    #: The dependencies that are met.
    met: list[str] = field(default_factory=list)
    estimated_ticks: int | None = None
    estimated_cost: float | None = None
    risk: float | None = None
    reason: str = ""
    ended_at: datetime | None = None


@dataclass(kw_only=True, slots=True)
class StepRow:
    """A step of a plan; the first is at position 1."""

    id: UUID
    plan_id: UUID
    position: int
    action: str
    description: str
    precondition: str = ""
    postcondition: str = ""
    estimated_ticks: int | None = None
    status: StepStatus = StepStatus.WAITING
    procedure_id: UUID | None = None


@dataclass(kw_only=True, slots=True)
class IntentRow:
    """A committed step towards a goal."""

    id: UUID
    agent_id: UUID
    goal_id: UUID
    action: str
    description: str
    step_id: UUID | None = None
    status: IntentStatus = IntentStatus.PENDING
    attempts: int = 0
    last_error: str = ""
    locked_by: UUID | None = None
    locked_at: datetime | None = None
    ticks_used: int = 0
    tick_limit: int | None = None
    ended_at: datetime | None = None
    procedure_id: UUID | None = None


@dataclass(kw_only=True, slots=True)
class NoteRow:
    """A note on the progress of a goal."""

    id: UUID
    goal_id: UUID
    text: str
    heartbeat_id: UUID | None


@dataclass(kw_only=True, slots=True)
class SatisfactionRow:
    """The satisfaction of a closed goal (`arbor.goals.satisfaction.GoalSatisfaction`)."""

    id: UUID
    agent_id: UUID
    goal_id: UUID
    outcome: GoalOutcome
    reward_actual: float
    reward_expected: float
    reputation_delta: float
    novelty: float
    effort: int


class GoalPerceptKind(StrEnum):
    """The kind of a percept about a goal: some of `apps.agents.models.PerceptKind`."""

    #: A goal, plan or intent of the agent has ended.
    ACTION_RESULT = "action_result"
    #: A step was abandoned because its heartbeats were used up.
    TIMEOUT = "timeout"


@dataclass(kw_only=True, slots=True)
class PerceptRow:
    """A percept about a goal for the agent's next heartbeat; `detail` has the ids of the goal and of the intent, if any."""

    id: UUID
    agent_id: UUID
    kind: GoalPerceptKind
    content: str
    detail: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class BacklogRows:
    """The open rows of an agent's backlog, by id, and a summary of the closed ones."""

    goals: dict[UUID, GoalRow] = field(default_factory=dict)
    plans: dict[UUID, PlanRow] = field(default_factory=dict)
    #: Steps of these plans, in order of their positions.
    steps: list[StepRow] = field(default_factory=list)
    intents: dict[UUID, IntentRow] = field(default_factory=dict)
    #: Intents that are locked by a heartbeat that still runs or waits.
    running_intents: frozenset[UUID] = frozenset()
    #: Closed parts by their open parent.
    ended_children: Mapping[UUID, list[ChildGoal]] = field(default_factory=dict)
    #: The results of the agent's latest goals, by source.
    experienced: Mapping[GoalSource, ExperiencedReward] = field(default_factory=dict)


type Row = GoalRow | PlanRow | StepRow | IntentRow | NoteRow | SatisfactionRow | PerceptRow


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalClosed:
    """A closed goal with its satisfaction, for the log."""

    goal_id: UUID
    state: GoalState
    satisfaction: SatisfactionRow


@dataclass(frozen=True, kw_only=True, slots=True)
class BacklogChanges:
    """Rows of one agent's backlog to write, in the order of their creation; false without any."""

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

    def closed(self, goal: GoalRow, satisfaction: SatisfactionRow) -> None:
        """Record a closed goal with its satisfaction."""
        self._closed.append(GoalClosed(goal_id=goal.id, state=goal.state, satisfaction=satisfaction))

    def changes(self, *, agent_id: UUID, at: datetime) -> BacklogChanges:
        """Return everything recorded since the log was cleared."""
        if not (self._new or self._changed):
            return BacklogChanges(agent_id=agent_id, at=at)
        new, changed = list(self._new.values()), list(self._changed.values())
        return BacklogChanges(
            agent_id=agent_id,
            at=at,
            new_goals=_rows_of_type(GoalRow, new),
            new_plans=_rows_of_type(PlanRow, new),
            new_steps=_rows_of_type(StepRow, new),
            new_intents=_rows_of_type(IntentRow, new),
            notes=_rows_of_type(NoteRow, new),
            satisfactions=_rows_of_type(SatisfactionRow, new),
            percepts=_rows_of_type(PerceptRow, new),
            changed_goals=_rows_of_type(GoalRow, changed),
            changed_plans=_rows_of_type(PlanRow, changed),
            changed_steps=_rows_of_type(StepRow, changed),
            changed_intents=_rows_of_type(IntentRow, changed),
            closed=tuple(self._closed),
        )

    def clear(self) -> None:
        """Clear the log after its rows were saved."""
        self._new.clear()
        self._changed.clear()
        self._closed.clear()


def _rows_of_type[R](kind: type[R], rows: list[Row]) -> tuple[R, ...]:
    return tuple(row for row in rows if type(row) is kind)
