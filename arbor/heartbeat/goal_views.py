"""The parts of a situation about goals and plans."""

from __future__ import annotations

from datetime import datetime

from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.review import Advice
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.self_views import Fraction, SituationPart


class GoalView(SituationPart):
    """A goal with its last three progress notes, oldest first."""

    id: str
    title: str
    description: str = ""
    state: GoalState
    layer: GoalLayer
    source: GoalSource
    priority: float = 0.0
    fraction: Fraction = 0.0
    notes: list[str] = []
    deadline: datetime | None = None
    #: `arbor.goals.review.GoalFlag` values.
    flags: list[str] = []
    #: Its parent goal.
    parent_id: str | None = None
    #: The blocker, while it lasts.
    blocked_by: str = ""
    #: Heartbeats spent on it.
    effort: int = 0
    #: -1 to 1.
    emotional_valence: float = 0.0
    #: The goal rule that created it, if any.
    rule: str = ""


class IntentView(SituationPart):
    """An intent; `attempts` counts failures, ticks are heartbeats."""

    id: str
    goal_id: str
    action: str
    description: str
    status: IntentStatus
    attempts: int = 0
    ticks_used: int = 0
    tick_limit: int | None = None


class StepView(SituationPart):
    """A step of a plan."""

    position: int
    action: str
    description: str
    precondition: str = ""
    postcondition: str = ""
    status: StepStatus


class PlanView(SituationPart):
    """An active plan or a draft; estimates in heartbeats and energy, risk 0 to 1."""

    id: str
    goal_id: str
    status: PlanStatus
    risk: float | None = None
    estimated_ticks: int | None = None
    estimated_cost: float | None = None
    dependencies: list[str] = []
    steps: list[StepView] = []


class IssueView(SituationPart):
    """A finding of the review; `goal_id` may be empty."""

    advice: Advice
    text: str
    goal_id: str = ""
