"""The reply of a model."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.selves.values import AspectKind

# The most items of each kind in one reply. Three new goals and three intentions: the origin of seed 000.
MAX_ACTIONS = 10
MAX_MEMORY_NOTES = 10
MAX_GOAL_UPDATES = 10
MAX_NEW_GOALS = 3
MAX_CONCERNS = 5
MAX_CURIOSITY = 10
MAX_DECOMPOSITIONS = 3
MAX_INTENTIONS = 3
MAX_DEPENDENCIES = 10
# Seed 000, 2: at most 20 proposals are pending.
MAX_PROPOSAL_DECISIONS = 20
MAX_IDENTITY_INSIGHTS = 5
MAX_EVIDENCE = 10
MAX_PEER_NOTES = 5
MAX_INTERESTS = 10
MAX_RESOLVED = 10
# A year of hourly heartbeats is 8,760.
MAX_TICKS = 1_000_000

# A reply has at least one of these keys (the origin of seed 000).
REQUIRED_KEYS = ("thinking", "actions", "memory_notes", "goal_updates")
# Asked for in every heartbeat, and only where the situation has something to decide.
COMMON_KEYS = (*REQUIRED_KEYS, "new_goals", "concerns", "curiosity")
FURTHER_KEYS = ("decompositions", "proposal_decisions", "identity_insights", "peer_notes", "resolved")
REPLY_KEYS = (*COMMON_KEYS, *FURTHER_KEYS)

type Share = Annotated[float, Field(ge=0, le=1)]
type Ticks = Annotated[int, Field(ge=0, le=MAX_TICKS)]


class Part(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ProposedAction(Part):
    """A proposed action, not validated yet."""

    action: str
    params: dict[str, Any] = {}
    reasoning: str = ""
    goal_id: str | None = None
    #: The intent that this action carries out.
    intent_id: str | None = None


class MemoryNote(Part):
    """A text to remember, and the day it is about."""

    text: str
    referenced_date: date | None = None


class GoalUpdate(Part):
    """A change of a goal: progress (0 to 1), a note, a new state and its reason."""

    goal_id: str
    progress: Share | None = None
    note: str | None = None
    state: GoalState | None = None
    reason: str | None = None
    #: The id of another goal, or words.
    blocked_by: str | None = None


class NewGoal(Part):
    """A proposed goal."""

    title: str
    description: str = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    source: GoalSource = GoalSource.CURIOSITY
    parent_goal_id: str | None = None
    deadline: datetime | None = None
    #: 0 to 1.
    expected_reward: Share | None = None


class Intention(Part):
    """One step towards a goal (seed 003, 3.8)."""

    action: str
    description: str
    precondition: str | None = None
    postcondition: str | None = None
    estimated_ticks: Ticks | None = None


class Decomposition(Part):
    """The steps of a goal, with estimates (seed 003, 3.8)."""

    goal_id: str
    intentions: Annotated[list[Intention], Field(max_length=MAX_INTENTIONS)]
    estimated_ticks: Ticks | None = None
    #: In energy.
    estimated_cost: Annotated[float, Field(ge=0)] | None = None
    #: 0 to 1, higher is riskier.
    risk: Share | None = None
    #: One line each.
    dependencies: list[str] = []


class ProposalChoice(StrEnum):
    """The decisions about a proposal (seed 000, 5)."""

    #: It becomes part of the self.
    ACCEPT = "accept"
    #: It does not.
    REJECT = "reject"
    #: It stays in the queue.
    DEFER = "defer"


class ProposalDecision(Part):
    """The decision about a proposal."""

    proposal_id: str
    decision: ProposalChoice
    reason: str = ""


class InsightKind(StrEnum):
    """The subject of an insight: an aspect (`AspectKind`) or a preference."""

    SELF_CONCEPT = AspectKind.SELF_CONCEPT.value
    AGENCY = AspectKind.AGENCY.value
    PURPOSE = AspectKind.PURPOSE.value
    VALUE = AspectKind.VALUE.value
    EMOTIONAL_BASELINE = AspectKind.EMOTIONAL_BASELINE.value
    THREAT_SENSITIVITY = AspectKind.THREAT_SENSITIVITY.value
    CHANGE_RESISTANCE = AspectKind.CHANGE_RESISTANCE.value
    #: Its content is `key: value`.
    PREFERENCE = "preference"


class IdentityInsight(Part):
    """An insight of the agent into itself; `evidence` are ids of memories."""

    kind: InsightKind
    content: str
    confidence: Share | None = None
    evidence: list[str] = []


class PeerOutcome(StrEnum):
    """The outcome of dealing with a peer."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"


class PeerNote(Part):
    """A note about a peer (seed 003, 3.6); `peer` is the shown name."""

    peer: str
    outcome: PeerOutcome
    competence: Share | None = None
    reliability: Share | None = None
    interests: list[str] = []


class Reply(Part):
    """A heartbeat's decision."""

    thinking: str = ""
    actions: list[ProposedAction] = []
    memory_notes: list[MemoryNote] = []
    goal_updates: list[GoalUpdate] = []
    new_goals: Annotated[list[NewGoal], Field(max_length=MAX_NEW_GOALS)] = []
    concerns: list[str] = []
    curiosity: list[str] = []
    decompositions: list[Decomposition] = []
    proposal_decisions: list[ProposalDecision] = []
    identity_insights: list[IdentityInsight] = []
    peer_notes: list[PeerNote] = []
    #: Settled concerns and questions, in the shown words.
    resolved: list[str] = []
