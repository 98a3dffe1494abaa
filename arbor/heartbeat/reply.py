"""What a model answers at a heartbeat."""

from __future__ import annotations

from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.selves.values import AspectKind

# At most so many of each in one reply. Three new goals and three intentions: the origin of seed 000; the rest is ours,
# so that a model that rambles is cut off.
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
# A year of hourly beats is 8,760; what is more is no estimate.
MAX_TICKS = 1_000_000

# At least one of these must be there for a JSON object to be a reply (the origin of seed 000).
REQUIRED_KEYS = ("thinking", "actions", "memory_notes", "goal_updates")
# Asked for in every beat, and only in a beat that has something to say under them.
COMMON_KEYS = (*REQUIRED_KEYS, "new_goals", "concerns", "curiosity")
FURTHER_KEYS = ("decompositions", "proposal_decisions", "identity_insights", "peer_notes", "resolved")
REPLY_KEYS = (*COMMON_KEYS, *FURTHER_KEYS)

type Share = Annotated[float, Field(ge=0, le=1)]
type Ticks = Annotated[int, Field(ge=0, le=MAX_TICKS)]


class Part(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ProposedAction(Part):
    """An action the model wants; nothing about it is checked yet but its form."""

    action: str
    params: dict[str, Any] = {}
    reasoning: str = ""
    goal_id: str | None = None
    #: The intent that this action carries out.
    intent_id: str | None = None


class MemoryNote(Part):
    """Something to remember; the date is the day it is about."""

    text: str
    referenced_date: date | None = None


class GoalUpdate(Part):
    """What happened to a goal: how far it is (0 to 1), a note, a move in the backlog and why."""

    goal_id: str
    progress: Share | None = None
    note: str | None = None
    state: GoalState | None = None
    reason: str | None = None
    #: What stands in its way: the id of another goal, or words.
    blocked_by: str | None = None


class NewGoal(Part):
    """A goal the model wants to take up."""

    title: str
    description: str = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    source: GoalSource = GoalSource.CURIOSITY
    parent_goal_id: str | None = None
    deadline: datetime | None = None
    #: What it is expected to be worth, 0 to 1.
    expected_reward: Share | None = None


class Intention(Part):
    """One step towards a goal: which action, what for, what must be so before and will be so after (seed 003, 3.8)."""

    action: str
    description: str
    precondition: str | None = None
    postcondition: str | None = None
    estimated_ticks: Ticks | None = None


class Decomposition(Part):
    """A goal broken into steps, with what they may take (seed 003, 3.8)."""

    goal_id: str
    intentions: Annotated[list[Intention], Field(max_length=MAX_INTENTIONS)]
    estimated_ticks: Ticks | None = None
    #: In energy.
    estimated_cost: Annotated[float, Field(ge=0)] | None = None
    #: 0 to 1, higher is riskier.
    risk: Share | None = None
    #: What it needs from elsewhere, one line each.
    dependencies: list[str] = []


class ProposalChoice(StrEnum):
    """What an agent says to a proposal (seed 000, 5)."""

    #: It becomes part of the self.
    ACCEPT = "accept"
    #: It does not.
    REJECT = "reject"
    #: It stays in the queue.
    DEFER = "defer"


class ProposalDecision(Part):
    """What is to become of a proposal, and why."""

    proposal_id: str
    decision: ProposalChoice
    reason: str = ""


class InsightKind(StrEnum):
    """What an insight is about: a side of who the agent is (`AspectKind`), or how it likes to do things."""

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
    """Something the agent sees about itself; `evidence` are ids of memories."""

    kind: InsightKind
    content: str
    confidence: Share | None = None
    evidence: list[str] = []


class PeerOutcome(StrEnum):
    """How working with another agent went."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"


class PeerNote(Part):
    """What the agent learned about another one (seed 003, 3.6); `peer` is its name, as it was shown."""

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
    #: Concerns and questions that are settled, in the words in which they were shown.
    resolved: list[str] = []
