"""What an agent sees of its goals and plans at a heartbeat: parts of its situation."""

from __future__ import annotations

from datetime import datetime

from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus, StepStatus
from arbor.goals.review import Advice
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.heartbeat.seen import Fraction, Seen


class GoalView(Seen):
    """A goal as the agent sees it; the last three progress notes, oldest first."""

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
    #: The goal that it is a part of.
    parent_id: str | None = None
    #: What it waits for and is still so.
    blocked_by: str = ""
    #: Heartbeats spent on it.
    effort: int = 0
    #: How the agent feels about it, -1 to 1.
    emotional_valence: float = 0.0
    #: The rule that made it, if one did.
    rule: str = ""


class IntentView(Seen):
    """A step the agent is committed to; `attempts` counts those that failed, ticks are heartbeats."""

    id: str
    goal_id: str
    action: str
    description: str
    status: IntentStatus
    attempts: int = 0
    ticks_used: int = 0
    tick_limit: int | None = None


class StepView(Seen):
    """A step of a plan, and how far it has come."""

    position: int
    action: str
    description: str
    precondition: str = ""
    postcondition: str = ""
    status: StepStatus


class PlanView(Seen):
    """A plan that is carried out, or a draft; estimates in heartbeats and energy, risk from 0 to 1."""

    id: str
    goal_id: str
    status: PlanStatus
    risk: float | None = None
    estimated_ticks: int | None = None
    estimated_cost: float | None = None
    dependencies: list[str] = []
    steps: list[StepView] = []


class IssueView(Seen):
    """Something the review of the goals found; `goal_id` is empty when it is about none."""

    advice: Advice
    text: str
    goal_id: str = ""
