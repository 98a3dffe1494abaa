"""Plans: ordered steps towards a goal, of which one at a time becomes an intent."""

from __future__ import annotations

from enum import StrEnum


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
