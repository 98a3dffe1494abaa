"""The situation of an agent: the only input of its prompt."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from operator import not_
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from arbor.agents.energy import REGENERATION
from arbor.authority.approvals import ApprovalStatus
from arbor.goals.goal_rules import calls_for_work
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import PlanStatus
from arbor.goals.values import GoalState
from arbor.heartbeat.usage import BudgetLevel
from arbor.heartbeat.views import (
    ActionTallyView,
    AspectView,
    AttemptView,
    BeliefView,
    ContradictionView,
    DriveView,
    ExperienceView,
    GoalView,
    IntentView,
    IssueView,
    MatchedBoundary,
    MoodView,
    PeerView,
    PlanView,
    PrecedentView,
    PreferenceView,
    ProposalView,
    PublicationView,
    SituationPart,
    SkillView,
    Sparse,
    StepHandlerView,
    SubscribedSignal,
)
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.memory.values import MemoryType

#: `apps.agents.models.PerceptKind`.
USER_MESSAGE = "user_message"
PEER_MESSAGE = "peer_message"
WEBHOOK = "webhook"
#: The most pending percepts that are counted.
PERCEPTS_COUNTED = 100


class Mode(StrEnum):
    """The focus of a heartbeat; decides the directive in its prompt."""

    #: A user waits for an answer.
    CONVERSATION = "conversation"
    #: The memory needs consolidation.
    CONSOLIDATION = "consolidation"
    #: Goals are active but nothing is committed: break one into steps.
    PLAN_EXECUTION = "plan_execution"
    #: A committed step waits: do it.
    GOAL_PURSUIT = "goal_pursuit"
    #: Nothing presses: think, and find something worth wanting.
    REFLECTION = "reflection"


class MemoryView(SituationPart):
    """A memory; `role` is empty for the agent's own; `score` is set if the memory was recalled."""

    id: str
    type: MemoryType
    content: str
    role: str = ""
    #: The id of the episode that it summarizes.
    episode: str = ""
    at: datetime
    importance: float = 0.5
    #: How far it is believed, 0 to 1.
    trust: float = 1.0
    score: float | None = None
    #: What its detail says, one line each (`arbor.memory.detail_text`).
    details: list[str] = []


class BufferItemView(SituationPart):
    """A buffer item."""

    content: str
    role: str = ""
    at: datetime
    #: How far it is believed, 0 to 1.
    trust: float = 1.0


class ClusterView(SituationPart):
    """An active cluster: valence -1 to 1, intensity 0 to 1."""

    name: str
    keywords: list[str] = []
    emotional_valence: float = 0.0
    emotional_intensity: float = 0.0
    activation: float = 0.0
    #: Names of related clusters, the nearest first.
    related: list[str] = []


class PerceptView(SituationPart):
    """A pending percept."""

    id: str
    kind: str
    content: str
    at: datetime
    #: The sending agent, by name and id; empty for other senders.
    peer: str = ""
    peer_id: str = ""
    #: Whether the percept brought the heartbeat forward.
    urgent: bool = False
    #: Data of a program, or the goal and intent that the percept is about.
    detail: dict[str, Any] = {}
    #: The beginning of the agent's message that the percept answers.
    answers: str = ""
    #: Whether the stored percept is sealed until it is taken in.
    was_sealed: bool = False


class ApprovalRequestView(SituationPart):
    """An action that waits for a person, that a person has approved, or that a person has denied."""

    id: str
    status: ApprovalStatus
    action: str
    #: The first text of its parameters.
    about: str = ""
    #: The person's reason.
    reason: str = ""


class NoticeKind(StrEnum):
    """The kinds of problems; the values label metrics."""

    #: Active goals without progress for a week.
    STAGNATION = "stagnation"
    #: Little energy used in a day of heartbeats.
    HOARDING = "hoarding"
    #: Too many messages to its users in a day.
    REACH_OUT_SPAM = "reach_out_spam"
    #: The same topic or narrative, repeatedly.
    LOOP = "loop"
    #: Maintenance is behind, so recall may be stale.
    WORKER_FAILURE = "worker_failure"
    #: The model declined to answer.
    REFUSALS = "refusals"
    #: The model's replies could not be read.
    INVALID_REPLIES = "invalid_replies"
    #: Too many pending percepts or intents.
    PILE_UP = "pile_up"
    #: Intents whose lock was never released.
    STUCK_INTENTS = "stuck_intents"
    #: A daily limit is nearly used up.
    BUDGET = "budget"


class Notice(SituationPart):
    """A problem, with a text for the agent."""

    kind: NoticeKind
    text: str


class LastHeartbeat(SituationPart):
    """The previous heartbeat; outcomes of its actions, one line each."""

    number: int
    mode: Mode
    narrative: str
    outcomes: list[str] = []


class ToolOffer(SituationPart):
    """The tool behind an action; description and schema are texts of its server."""

    id: str
    #: Identifies what an operator allowed (`arbor.tools.ports`).
    fingerprint: str
    description: str
    #: The JSON schema of its arguments (`arbor.tools.schemas`).
    arguments: dict[str, Any]


class ActionOffer(SituationPart):
    """A permitted action; descriptions of its parameters by name."""

    name: str
    cost: int
    summary: str
    params: dict[str, str] = {}
    #: The tool of an MCP server that the action calls; None for Arbor's own actions.
    tool: ToolOffer | None = None


class Environment(SituationPart):
    """The world around the agent."""

    now: datetime
    user_waiting: bool = False
    #: Pending messages of users, counted up to one more than is shown.
    user_messages: int = 0
    #: None: no contact yet.
    hours_since_user: float | None = None
    #: Counted up to `PERCEPTS_COUNTED`.
    pending_percepts: int = 0
    #: A conversation is open, or a user was just in contact.
    user_present: bool = False
    #: None: never.
    hours_since_reach_out: float | None = None
    #: Public messages in the last 24 hours.
    published_today: int = 0
    #: Names of other agents that it can write to, some of many.
    other_agents: list[str] = []


class Terms(SituationPart):
    """The decision inputs that no prompt shows, stored for replays."""

    #: Names of the permitted actions; `missing` has the reasons by unavailable action.
    allowed: list[str]
    missing: dict[str, str] = {}
    #: An `arbor.heartbeat.budgets.BudgetKind`, and its allowance if it was not the default.
    budget: str = "energy"
    allowance: int | None = None
    #: Prices in energy that were not the defaults, by action.
    costs: dict[str, int] = {}
    #: Tokens of the window of its prompt, and of the longest reply to it: counted by this tokenizer, or estimated without one.
    window: int | None = None
    reply_tokens: int | None = None
    tokenizer: Annotated[str, Field(exclude_if=not_)] = ""
    #: The agent's own rows of boundaries, as JSON.
    boundaries: list[dict[str, Any]] = []


class Situation(SituationPart):
    """Everything that an agent sees at a heartbeat. JSON by `model_dump(mode="json")`, back by `model_validate`."""

    agent_id: str
    name: str
    public_id: str
    tenant: str
    #: Whether the reflex policy decides; pages and logs say so.
    model_is_reflex: bool = False
    #: Counts from 1. Older stored situations have the second name, here and below.
    heartbeat_number: Annotated[int, Field(validation_alias=AliasChoices("heartbeat_number", "beat_number"))]
    mode: Mode = Mode.REFLECTION
    environment: Environment
    energy: float
    max_energy: float
    #: The energy that comes back at each heartbeat, under a budget of energy.
    regeneration: float = REGENERATION
    #: The unit: `energy`, `actions` or `ticks`.
    energy_unit: str = "energy"
    actions: list[ActionOffer]
    #: Its active skills, in order.
    skills: Sparse[SkillView] = []
    goals: list[GoalView] = []
    intents: list[IntentView] = []
    #: Active plans and drafts of the open goals, the oldest first.
    plans: list[PlanView] = []
    #: Findings of the review.
    issues: list[IssueView] = []
    #: Aspects and beliefs in the order in which a prompt keeps them (`arbor.selves.salience`).
    aspects: list[AspectView] = []
    beliefs: list[BeliefView] = []
    mood: MoodView | None = None
    drives: list[DriveView] = []
    #: Heartbeats in a row without news.
    stale_heartbeats: Annotated[
        int, Field(validation_alias=AliasChoices("stale_heartbeats", "stale_beats"))
    ] = 0
    #: Attempts and successes of all heartbeats, by action in alphabetical order.
    capabilities: list[ActionTallyView] = []
    experiences: list[ExperienceView] = []
    #: What succeeded in situations like this one.
    tallies: Sparse[ActionTallyView] = []
    #: Earlier attempts at tasks like the new ones, failed ones first.
    attempts: Sparse[AttemptView] = []
    #: Decisions of people about requests like those at hand, denials first.
    precedents: Sparse[PrecedentView] = []
    #: What became of earlier texts for people.
    publications: Sparse[PublicationView] = []
    #: Who was given work like this one.
    handlers: Sparse[StepHandlerView] = []
    preferences: list[PreferenceView] = []
    #: Peers who have just written come first.
    peers: list[PeerView] = []
    #: The latest contradictions first.
    contradictions: list[ContradictionView] = []
    proposals: list[ProposalView] = []
    #: Requests for approval, the oldest first.
    approvals: list[ApprovalRequestView] = []
    #: Boundary matches of the percepts, the most important first.
    boundary_matches: Annotated[
        list[MatchedBoundary], Field(validation_alias=AliasChoices("boundary_matches", "crossed"))
    ] = []
    #: The latest memories, oldest first.
    recent: list[MemoryView] = []
    #: Recalled memories, best first.
    relevant: list[MemoryView] = []
    #: Memories that actions of this heartbeat recalled; empty in a stored situation (`HeartbeatState.recalled`).
    recalled: list[MemoryView] = []
    #: Active clusters, the most active first.
    clusters: Annotated[list[ClusterView], Field(validation_alias=AliasChoices("clusters", "themes"))] = []
    #: Matching buffer items, best first.
    held: list[BufferItemView] = []
    #: Signals that it is subscribed to, those of the source that waits longest first.
    signals: Sparse[SubscribedSignal] = []
    #: Oldest first.
    percepts: list[PerceptView] = []
    #: Percepts without room in the prompt, left for the next heartbeat.
    waiting: list[PerceptView] = []
    notices: list[Notice] = []
    #: The budget level.
    degradation: BudgetLevel = BudgetLevel.NORMAL
    working_memory: WorkingMemory = WorkingMemory()
    last_heartbeat: Annotated[
        LastHeartbeat | None, Field(validation_alias=AliasChoices("last_heartbeat", "last_beat"))
    ] = None
    #: Set when the situation is stored.
    terms: Terms | None = None

    @property
    def tools(self) -> dict[str, ActionOffer]:
        """Return the offered actions that call tools of MCP servers, by name."""
        return {offer.name: offer for offer in self.actions if offer.tool is not None}

    @property
    def active_goals(self) -> list[GoalView]:
        """Return the active goals, most important first."""
        return self.goals_in(GoalState.ACTIVE)

    @property
    def pending_intents(self) -> list[IntentView]:
        """Return the pending intents of active goals, by the importance of their goals, then in order.

        Where the reflex policy decides, intents of blocked goals are left out.
        """
        if not self.intents:
            return []
        blocked = self._blocked_for_rules
        goals = (goal for goal in self.active_goals if goal.id not in blocked)
        places = {goal.id: place for place, goal in enumerate(goals)}
        pending = (
            intent
            for intent in self.intents
            if intent.status is IntentStatus.PENDING and intent.goal_id in places
        )
        return sorted(pending, key=lambda intent: places[intent.goal_id])

    @property
    def foremost_goal(self) -> GoalView | None:
        """Return the most important active goal that calls for work; one that waits for something, last."""
        work = [goal for goal in self.active_goals if calls_for_work(goal.layer, goal.rule)]
        waiting = self.waiting_goals
        return next(
            (goal for goal in work if not goal.blocked_by and goal.id not in waiting),
            work[0] if work else None,
        )

    @property
    def waiting_goals(self) -> frozenset[str]:
        """Return the ids of the goals whose active plan waits for a dependency, or by a precondition for another goal.

        Where the reflex policy decides, also those of blocked goals: a rule cannot see to what blocks them.
        """
        return self._blocked_for_rules.union(plan.goal_id for plan in self.plans if plan.is_waiting)

    @property
    def _blocked_for_rules(self) -> frozenset[str]:
        if not self.model_is_reflex:
            return frozenset()
        return frozenset(goal.id for goal in self.goals if goal.blocked_by)

    @property
    def shown_plan(self) -> PlanView | None:
        """Return the plan of the most important active goal that has one: its active plan, or else its latest draft."""
        for goal in self.active_goals:
            plans = [plan for plan in self.plans if plan.goal_id == goal.id]
            if plans:
                return next((plan for plan in plans if plan.status is PlanStatus.ACTIVE), plans[-1])
        return None

    def goals_in(self, state: GoalState) -> list[GoalView]:
        """Return the goals in a state, most important first."""
        return sorted(
            (goal for goal in self.goals if goal.state is state), key=lambda goal: (-goal.priority, goal.id)
        )
