"""The parts of a situation about the past that bears on the work at hand."""

from __future__ import annotations

from datetime import datetime
from operator import not_
from typing import Annotated

from pydantic import Field

from arbor.heartbeat.views import SituationPart


class AttemptView(SituationPart):
    """An earlier goal like the task at hand, with its outcome."""

    title: str
    #: An `arbor.goals.satisfaction.GoalOutcome`, or `open`.
    outcome: str
    at: datetime
    #: Why it was abandoned, and why plans and steps of it failed.
    reasons: list[str] = []


class ActionTally(SituationPart):
    """The attempts and successes of an action in situations like this one."""

    action: str
    attempts: int
    successes: int


class PrecedentView(SituationPart):
    """A person's decision about an earlier request for approval."""

    action: str
    about: str = ""
    approved: bool
    reason: str = ""
    at: datetime


class PublicationView(SituationPart):
    """A text that the agent sent to people, or a result that a workflow brought, and what became of it."""

    #: `public`, `user`, or `workflow`.
    audience: str
    content: str
    at: datetime
    #: What became of it, in words.
    outcome: str


class StepHandlerView(SituationPart):
    """An agent that was given steps of workflows like the task at hand."""

    name: str
    steps: int
    completed: int
    #: The mean number of tries of a step.
    tries: float = 1.0
    #: The error of the latest step that failed.
    error: str = ""


#: Stored only if there are any.
AttemptViews = Annotated[list[AttemptView], Field(exclude_if=not_)]
ActionTallies = Annotated[list[ActionTally], Field(exclude_if=not_)]
PrecedentViews = Annotated[list[PrecedentView], Field(exclude_if=not_)]
PublicationViews = Annotated[list[PublicationView], Field(exclude_if=not_)]
StepHandlerViews = Annotated[list[StepHandlerView], Field(exclude_if=not_)]
