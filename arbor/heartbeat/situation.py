"""What an agent sees at a heartbeat: all that its prompt is rendered from, and nothing else."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus
from arbor.goals.values import GoalState
from arbor.heartbeat.failure_modes import Notice
from arbor.heartbeat.goal_views import GoalView, IntentView, IssueView, PlanView
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.seen import Seen
from arbor.heartbeat.self_views import (
    AspectView,
    BeliefView,
    CapabilityView,
    ContradictionView,
    CrossedView,
    DriveView,
    ExperienceView,
    MoodView,
    PeerView,
    PreferenceView,
    ProposalView,
)
from arbor.heartbeat.usage import Degradation
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.values import MemoryType


class MemoryView(Seen):
    """A memory as the agent sees it; `role` is empty for its own; `score` is set when it was recalled."""

    id: str
    type: MemoryType
    content: str
    role: str = ""
    at: datetime
    importance: float = 0.5
    score: float | None = None


class HeldView(Seen):
    """Something the agent heard or noted lately and has not decided to remember."""

    content: str
    role: str = ""
    at: datetime


class ThemeView(Seen):
    """A theme that the agent's mind is on: how it feels from -1 to 1, how strongly from 0 to 1, how present it is."""

    name: str
    keywords: list[str] = []
    emotional_valence: float = 0.0
    emotional_intensity: float = 0.0
    activation: float = 0.0


class PerceptView(Seen):
    """Something that reached the agent since its last beat."""

    id: str
    kind: str
    content: str
    at: datetime
    #: The agent that it came from, by name and id; empty for anybody else.
    peer: str = ""
    peer_id: str = ""
    #: Whether it brought the beat forward.
    urgent: bool = False
    #: What goes with it: what a program told, or the goal and intent it is about.
    detail: dict[str, Any] = {}
    #: The beginning of the agent's own message that it answers.
    answers: str = ""


class LastBeat(Seen):
    """The beat before this one; its actions' outcomes, one line each."""

    number: int
    mode: Mode
    narrative: str
    outcomes: list[str] = []


class ActionOffer(Seen):
    """An action the agent may use, with its parameters in words by name."""

    name: str
    cost: int
    summary: str
    params: dict[str, str] = {}


class Environment(Seen):
    """The world around the agent."""

    now: datetime
    user_waiting: bool = False
    #: Messages of users that wait, those that are shown included; counted up to one more than is shown.
    user_messages: int = 0
    #: None: no user has ever been in contact.
    hours_since_user: float | None = None
    #: What waits, that which is shown included; counted up to 100.
    pending_percepts: int = 0
    #: Somebody is there: a conversation is open, or a user was in touch a moment ago.
    user_present: bool = False
    #: None: it has never reached out.
    hours_since_reach_out: float | None = None
    #: What it wrote in public in the last 24 hours.
    published_today: int = 0


class Terms(Seen):
    """By what rules the beat decided: what deciding it again needs, beside what it saw. No prompt shows it."""

    #: Names of actions; those the installation could not do are in `missing`, with why.
    allowed: list[str]
    missing: dict[str, str] = {}
    #: An `arbor.heartbeat.budgets.BudgetKind`, and its allowance if it was not the default.
    budget: str = "energy"
    allowance: int | None = None
    #: What its prompt had to fit into, in tokens.
    window: int | None = None
    #: The agent's own rows of boundaries, as JSON.
    boundaries: list[dict[str, Any]] = []


class Situation(Seen):
    """Everything an agent sees at a heartbeat. JSON by `model_dump(mode="json")`, back by `model_validate`."""

    agent_id: str
    name: str
    public_id: str
    tenant: str
    #: No language model decides: the reflex policy does, and whoever looks is told so.
    model_is_reflex: bool = False
    #: Counts from 1.
    beat_number: int
    mode: Mode = Mode.REFLECTION
    environment: Environment
    energy: float
    max_energy: float
    #: What it is counted in: `energy`, or the actions or ticks of another budget.
    energy_unit: str = "energy"
    actions: list[ActionOffer]
    goals: list[GoalView] = []
    intents: list[IntentView] = []
    #: Active plans and drafts of the open goals.
    plans: list[PlanView] = []
    #: What the review of the goals found.
    issues: list[IssueView] = []
    #: Who it takes itself to be, and what it believes, the firmest first.
    aspects: list[AspectView] = []
    beliefs: list[BeliefView] = []
    #: How it feels, and what moves it.
    mood: MoodView | None = None
    drives: list[DriveView] = []
    #: Heartbeats since it last met something new.
    stale_beats: int = 0
    #: How its actions have turned out, and what they taught, failures first.
    capabilities: list[CapabilityView] = []
    experiences: list[ExperienceView] = []
    preferences: list[PreferenceView] = []
    #: Who it deals with, those who have just written first.
    peers: list[PeerView] = []
    #: What speaks against its beliefs, and changes to itself that it has to decide about, the surest first.
    contradictions: list[ContradictionView] = []
    proposals: list[ProposalView] = []
    #: Boundaries that what reached it touches, the most important first.
    crossed: list[CrossedView] = []
    #: The latest memories, oldest first.
    recent: list[MemoryView] = []
    #: What recall found, best first.
    relevant: list[MemoryView] = []
    #: What its mind is on, the most present first.
    themes: list[ThemeView] = []
    #: What it holds besides its memories that bears on the moment, best first.
    held: list[HeldView] = []
    #: Oldest first.
    percepts: list[PerceptView] = []
    #: Of what reached it, what its prompt had no room for: the next beat takes it in.
    waiting: list[PerceptView] = []
    #: What is wrong with how it has been living.
    notices: list[Notice] = []
    #: How far the day's budget is used up.
    degradation: Degradation = Degradation.NORMAL
    working_memory: WorkingMemory = WorkingMemory()
    last_beat: LastBeat | None = None
    #: Set on record.
    terms: Terms | None = None

    @property
    def active_goals(self) -> list[GoalView]:
        """Return the active goals, most important first."""
        return self.goals_in(GoalState.ACTIVE)

    @property
    def pending_intents(self) -> list[IntentView]:
        """Return the intents that wait to be executed and serve an active goal, in order."""
        active = {goal.id for goal in self.goals if goal.state is GoalState.ACTIVE}
        return [
            intent
            for intent in self.intents
            if intent.status is IntentStatus.PENDING and intent.goal_id in active
        ]

    def plan_of(self, goal_id: str) -> PlanView | None:
        """Return the plan by which a goal is pursued, or a draft where it has none."""
        mine = [plan for plan in self.plans if plan.goal_id == goal_id]
        return next((plan for plan in mine if plan.status is PlanStatus.ACTIVE), mine[0] if mine else None)

    def goals_in(self, state: GoalState) -> list[GoalView]:
        """Return the goals in a state, most important first."""
        return sorted(
            (goal for goal in self.goals if goal.state is state), key=lambda goal: (-goal.priority, goal.id)
        )
