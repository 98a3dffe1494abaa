"""The parts of a situation about the self, its goals and its past, skills, signals and passages, and the base of all parts."""

from __future__ import annotations

from datetime import datetime
from operator import not_
from typing import Annotated, TypeVar

from pydantic import AliasChoices, BaseModel, Field, field_validator

from arbor.goals.conditions import unmet
from arbor.goals.intents import IntentStatus
from arbor.goals.plans import OPEN_STEPS, PlanStatus, StepStatus
from arbor.goals.review import Advice
from arbor.goals.values import GoalLayer, GoalSource, GoalState, GoalType
from arbor.selves.boundaries import BoundaryResponse
from arbor.selves.drives import Drive
from arbor.selves.proposals import ProposalKind
from arbor.selves.values import AspectKind, BeliefCategory, BeliefStatus

#: The longest content of a percept, such as a message to an agent, in characters; prompts show it whole.
PERCEPT_LENGTH = 8_000
Fraction = Annotated[float, Field(ge=0, le=1)]


class SituationPart(BaseModel, frozen=True):
    """A part of a situation. Unknown keys are ignored: another version of Arbor may resume a heartbeat."""


_Part = TypeVar("_Part", bound=SituationPart)
#: A list that is stored only if it has entries.
Sparse = Annotated[list[_Part], Field(exclude_if=not_)]


class SkillView(SituationPart):
    """A skill: instructions for the agent's work, never cut. Stored without its text, which the digest names."""

    name: str
    #: The digest of its version (`arbor.knowledge.skills`).
    digest: str = ""
    text: Annotated[str, Field(exclude=True)] = ""


class SubscribedSignal(SituationPart):
    """Signals of one name and source since the last prompt (`arbor.knowledge.subscriptions`)."""

    name: str
    #: The agent that they are about, `you` for itself; empty for what the agents of the tenant share.
    source: str = ""
    count: int = 1
    #: The time of the latest one, and what the latest ones are about.
    at: datetime
    subjects: list[str] = []


class PassageView(SituationPart):
    """A passage of a document, or a result of another source of a search, with its citation."""

    id: str
    #: The title of its document or source.
    title: str
    #: Where the document has it (a page, headings), or the date of a result of another source.
    place: str = ""
    text: str
    #: How similar the passage is to the query, 0 to 1.
    similarity: float = 0.0


class AspectView(SituationPart):
    """An aspect."""

    id: str
    kind: AspectKind
    content: str
    status: BeliefStatus = BeliefStatus.HELD


class BeliefView(SituationPart):
    """A belief."""

    id: str
    category: BeliefCategory
    statement: str
    confidence: Fraction
    status: BeliefStatus = BeliefStatus.HELD

    @field_validator("category", mode="before")
    @classmethod
    def _values_are_aspects(cls, category: object) -> object:
        # Situations that an earlier version stored have values as beliefs.
        return BeliefCategory.SELF if category == "values" else category


class DriveView(SituationPart):
    """A drive and its level."""

    name: Drive
    level: Fraction
    urgent: bool = False


class MoodView(SituationPart):
    """The mood: valence -1 to 1, arousal 0 to 1."""

    valence: Annotated[float, Field(ge=-1, le=1)] = 0.0
    arousal: Fraction = 0.0


class MatchedBoundary(SituationPart):
    """A boundary match: `why` names the matched words or example, `about` the percept, if any."""

    boundary: str
    response: BoundaryResponse
    description: str = ""
    why: str
    about: str = ""
    #: Words of reasoning that a negotiable boundary requires; None if it is not negotiable.
    words_to_negotiate: int | None = None


class ProposalView(SituationPart):
    """A pending proposal; `evidence` counts memories."""

    id: str
    kind: ProposalKind
    #: The kind of the proposed aspect, such as `trait`; empty for other kinds of proposals.
    aspect: str = ""
    content: str
    confidence: Fraction
    deferrals: int = 0
    evidence: int = 0
    #: The time of the proposal; None in older stored situations.
    at: datetime | None = None


class PreferenceView(SituationPart):
    """A preference."""

    key: str
    value: str


class ActionTallyView(SituationPart):
    """Attempts and successes of an action, ever or in situations like this one."""

    action: str
    attempts: int
    successes: int

    @property
    def share(self) -> float:
        return self.successes / self.attempts if self.attempts else 0.0


class ExperienceView(SituationPart):
    """An experience."""

    action: str
    about: str = ""
    outcome: str
    lesson: str
    #: `tick` in older stored situations.
    heartbeat_number: Annotated[int, Field(validation_alias=AliasChoices("heartbeat_number", "tick"))] = 0


class PeerView(SituationPart):
    """A peer; `trust` is the current trust in it."""

    name: str
    #: The peer's id, if it is an agent.
    peer_id: str = ""
    #: Whether the peer sent one of the percepts.
    present: bool = False
    trust: Fraction
    competence: Fraction = 0.5
    reliability: Fraction = 0.5
    interests: list[str] = []
    interactions: int = 0


class ContradictionView(SituationPart):
    """A memory that contradicts a belief or another memory, not settled yet; `statement` is the text of the belief or the other memory."""

    belief_id: str = ""
    #: The other memory.
    other_id: str = ""
    statement: str
    memory_id: str
    content: str


class GoalView(SituationPart):
    """A goal with its last three progress notes, oldest first; a repeated one is shown once."""

    id: str
    title: str
    description: str = ""
    state: GoalState
    layer: GoalLayer
    type: GoalType = GoalType.ACHIEVE
    source: GoalSource
    #: As computed from the stated priority and other terms.
    priority: float = 0.0
    fraction: Fraction = 0.0
    notes: list[str] = []
    deadline: datetime | None = None
    #: `arbor.goals.review.GoalFlag` values.
    flags: list[str] = []
    #: The id of the parent goal.
    parent_id: str | None = None
    #: The blocker, while it lasts.
    blocked_by: str = ""
    #: Heartbeats spent on the goal.
    effort: int = 0
    #: -1 to 1.
    emotional_valence: float = 0.0
    #: The rule that created the goal, if any.
    rule: str = ""


class IntentView(SituationPart):
    """An intent; `attempts` counts failures, and parts beyond the estimate; ticks are heartbeats."""

    id: str
    goal_id: str
    action: str
    description: str
    status: IntentStatus
    attempts: int = 0
    ticks_used: int = 0
    tick_limit: int | None = None
    #: The memory of the procedure that it follows, and what that says, one line each.
    procedure_id: str | None = None
    procedure: list[str] = []
    #: What must be true before and after it; may be empty.
    precondition: str = ""
    postcondition: str = ""


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
    met: list[str] = []
    steps: list[StepView] = []

    @property
    def waits_for(self) -> list[str]:
        """Return the dependencies that are not met; none of its steps is carried out before."""
        return unmet(self.dependencies, self.met)

    @property
    def is_waiting(self) -> bool:
        """Return whether an active plan waits: for a dependency, or because no open step of it is committed."""
        left = [step for step in self.steps if step.status in OPEN_STEPS]
        waits = left and all(step.status is StepStatus.WAITING for step in left)
        return self.status is PlanStatus.ACTIVE and bool(self.waits_for or waits)


class IssueView(SituationPart):
    """A finding of the review; `goal_id` may be empty."""

    advice: Advice
    text: str
    goal_id: str = ""


class AttemptView(SituationPart):
    """An earlier goal like the task at hand, with its outcome."""

    title: str
    #: An `arbor.goals.satisfaction.GoalOutcome`, or `open`.
    outcome: str
    at: datetime
    #: Why it was abandoned, and why plans and steps of it failed.
    reasons: list[str] = []


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
