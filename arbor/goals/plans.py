"""Plans: ordered steps towards a goal, of which the next become intents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from arbor.errors import Invalid, TransitionIllegal
from arbor.goals.intents import MAX_AT_ONCE
from arbor.memory.content import check_line, check_text

#: The most steps of a plan.
MAX_STEPS = 20
MAX_DEPENDENCIES = 10
STEP_LENGTH = 1_000
#: The largest estimate that is accepted: a year of hourly heartbeats is 8,760.
MAX_ESTIMATE = 1_000_000


class PlanStatus(StrEnum):
    """The status of a plan (seed 003, 3.8)."""

    #: Drafted, not started.
    DRAFT = "draft"
    #: Being carried out; a goal has at most one.
    ACTIVE = "active"
    #: Every step is done.
    COMPLETED = "completed"
    #: Abandoned, with a reason.
    ABANDONED = "abandoned"


PLAN_TRANSITIONS: Mapping[PlanStatus, tuple[PlanStatus, ...]] = MappingProxyType(
    {
        PlanStatus.DRAFT: (PlanStatus.ACTIVE, PlanStatus.ABANDONED),
        PlanStatus.ACTIVE: (PlanStatus.COMPLETED, PlanStatus.ABANDONED),
        PlanStatus.COMPLETED: (),
        PlanStatus.ABANDONED: (),
    }
)


class StepStatus(StrEnum):
    """The status of a step of a plan."""

    #: Not committed yet.
    WAITING = "waiting"
    #: Committed as an intent.
    COMMITTED = "committed"
    #: Done.
    COMPLETED = "completed"
    #: Failed for good, or its plan was abandoned.
    ABANDONED = "abandoned"


#: Steps that are still to be done.
OPEN_STEPS = frozenset({StepStatus.WAITING, StepStatus.COMMITTED})


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDraft:
    """A drafted step: action, purpose, precondition and postcondition (seed 003, 3.8)."""

    action: str
    description: str
    precondition: str = ""
    postcondition: str = ""
    estimated_ticks: int | None = None
    #: The memory of the procedure that the step follows, if any.
    procedure_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanDraft:
    """Drafted steps towards a goal, with estimates of heartbeats, energy and risk (0 to 1), and dependencies."""

    steps: Sequence[StepDraft]
    estimated_ticks: int | None = None
    estimated_cost: float | None = None
    risk: float | None = None
    dependencies: Sequence[str] = ()


def check_draft(draft: PlanDraft) -> None:
    """Raise Invalid for a draft that cannot be stored."""
    if not draft.steps:
        raise Invalid("a plan has at least one step")
    if len(draft.dependencies) > MAX_DEPENDENCIES:
        raise Invalid(f"a plan names at most {MAX_DEPENDENCIES} dependencies, got {len(draft.dependencies)}")
    if draft.risk is not None and not 0 <= draft.risk <= 1:
        raise Invalid(f"a plan's risk is 0 to 1, got {draft.risk}")
    for estimate in (
        draft.estimated_ticks,
        draft.estimated_cost,
        *(step.estimated_ticks for step in draft.steps),
    ):
        if estimate is not None and not 0 <= estimate <= MAX_ESTIMATE:
            raise Invalid(f"an estimate is 0 to {MAX_ESTIMATE}, got {estimate}")
    for step in draft.steps:
        texts = (step.description, step.precondition, step.postcondition)
        if not step.description.strip() or any(len(text) > STEP_LENGTH for text in texts):
            raise Invalid(
                "a step has a description; description, precondition and postcondition have up to"
                f" {STEP_LENGTH:,} characters each"
            )
        for text in texts:
            check_text("a step", text)
    for dependency in draft.dependencies:
        if not dependency.strip():
            raise Invalid("a dependency of a plan needs a text")
        check_line("a dependency of a plan", dependency, STEP_LENGTH)


def move_plan(status: PlanStatus, to: PlanStatus) -> PlanStatus:
    """Return `to` if a plan may go there from `status`; raises TransitionIllegal, naming the possible statuses."""
    possible = PLAN_TRANSITIONS[status]
    if to not in possible:
        raise TransitionIllegal(
            f"a plan that is {status} can become {', '.join(possible) or 'nothing else'}, not {to}"
        )
    return to


def next_to_commit(steps: Sequence[tuple[StepStatus, bool]], *, committed: int) -> list[int]:
    """Return the indexes (from 0) of the steps to commit now, when `committed` intents of the goal are open already.

    `steps` are (status, has a precondition) in order. Steps are committed in order while there is room; one
    with a precondition waits until all before it are done.
    """
    ready: list[int] = []
    for index, (status, has_precondition) in enumerate(steps):
        if status is not StepStatus.WAITING:
            continue
        if committed + len(ready) >= MAX_AT_ONCE:
            break
        if has_precondition and any(before is not StepStatus.COMPLETED for before, _ in steps[:index]):
            break
        ready.append(index)
    return ready


def is_carried_out(steps: Sequence[StepStatus]) -> bool:
    """Return whether a plan has steps and all of them are completed."""
    return bool(steps) and all(status is StepStatus.COMPLETED for status in steps)


class LinkKind(StrEnum):
    """The kind of a link between a memory and a goal (seed 004, 7.4)."""

    #: The memory gave rise to the goal.
    ORIGIN = "origin"
    #: The memory records progress.
    PROGRESS = "progress"
    #: The memory records the goal's end.
    COMPLETION = "completion"
    #: The memory is about a blocker.
    BLOCKER = "blocker"


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalLink:
    """A memory linked to a goal."""

    goal_id: UUID
    memory_id: UUID
    kind: LinkKind
