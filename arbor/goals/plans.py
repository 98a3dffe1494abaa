"""Plans: ordered steps towards a goal, of which the next become intents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from arbor.errors import Invalid, TransitionIllegal
from arbor.goals.intents import MAX_AT_ONCE

#: Steps of one plan: a longer one is not a plan that anybody keeps in view. Ours.
MAX_STEPS = 20
MAX_DEPENDENCIES = 10
STEP_LENGTH = 1_000
#: What is more is no estimate of anything.
MAX_ESTIMATE = 1_000_000


class PlanStatus(StrEnum):
    """How far a plan has come (seed 003, 3.8)."""

    #: Thought of, not taken up.
    DRAFT = "draft"
    #: Being carried out; a goal has at most one.
    ACTIVE = "active"
    #: Every step is done.
    COMPLETED = "completed"
    #: Given up, with a reason.
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
    """How far a step of a plan has come."""

    #: Its turn has not come.
    WAITING = "waiting"
    #: It is an intent now.
    COMMITTED = "committed"
    #: Done.
    COMPLETED = "completed"
    #: It failed for good, or its plan was given up.
    ABANDONED = "abandoned"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDraft:
    """A step as it is thought of: which action, what for, what must be so before and will be so after (seed 003, 3.8)."""

    action: str
    description: str
    precondition: str = ""
    postcondition: str = ""
    estimated_ticks: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanDraft:
    """Steps towards a goal, with what they may take: heartbeats, energy, risk from 0 to 1, things from elsewhere."""

    steps: Sequence[StepDraft]
    estimated_ticks: int | None = None
    estimated_cost: float | None = None
    risk: float | None = None
    dependencies: Sequence[str] = ()


def check_draft(draft: PlanDraft) -> None:
    """Raise Invalid for a plan that cannot be kept."""
    if not draft.steps:
        raise Invalid("a plan has at least one step")
    if len(draft.dependencies) > MAX_DEPENDENCIES:
        raise Invalid(f"a plan names at most {MAX_DEPENDENCIES} dependencies, got {len(draft.dependencies)}")
    if draft.risk is not None and not 0 <= draft.risk <= 1:
        raise Invalid(f"a plan's risk is 0 to 1, got {draft.risk}")
    for estimate in (draft.estimated_ticks, draft.estimated_cost, *(s.estimated_ticks for s in draft.steps)):
        if estimate is not None and not 0 <= estimate <= MAX_ESTIMATE:
            raise Invalid(f"an estimate is 0 to {MAX_ESTIMATE}, got {estimate}")
    for step in draft.steps:
        texts = (step.description, step.precondition, step.postcondition)
        if not step.description.strip() or any(len(text) > STEP_LENGTH or "\0" in text for text in texts):
            raise Invalid(
                f"what a step is for, needs and brings about has up to {STEP_LENGTH} characters each"
            )


def move_plan(status: PlanStatus, to: PlanStatus) -> PlanStatus:
    """Return `to` if a plan may go there from `status`; raises TransitionIllegal, naming what is possible."""
    possible = PLAN_TRANSITIONS[status]
    if to not in possible:
        raise TransitionIllegal(
            f"a plan that is {status} can become {', '.join(possible) or 'nothing else'}, not {to}"
        )
    return to


def next_to_commit(steps: Sequence[tuple[StepStatus, bool]], *, committed: int) -> list[int]:
    """Return the places of the steps that become intents now, `committed` of the goal being intents already.

    `steps` are (status, has a precondition) in order. Steps are committed in order, as many as there is room for; one
    with a precondition waits until all before it are done, for it rests on what they bring about.
    """
    ready: list[int] = []
    for place, (status, has_precondition) in enumerate(steps):
        if status is not StepStatus.WAITING:
            continue
        if committed + len(ready) >= MAX_AT_ONCE:
            break
        if has_precondition and any(before is not StepStatus.COMPLETED for before, _ in steps[:place]):
            break
        ready.append(place)
    return ready


def is_carried_out(steps: Sequence[StepStatus]) -> bool:
    """Tell whether a plan is done: it has steps, and every one is."""
    return bool(steps) and all(status is StepStatus.COMPLETED for status in steps)


class LinkKind(StrEnum):
    """What a memory is to a goal (seed 004, 7.4)."""

    #: It gave rise to the goal.
    ORIGIN = "origin"
    #: It tells of progress.
    PROGRESS = "progress"
    #: It tells of the end.
    COMPLETION = "completion"
    #: It stands in the way.
    BLOCKER = "blocker"


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalLink:
    """A memory tied to a goal."""

    goal_id: UUID
    memory_id: UUID
    kind: LinkKind
