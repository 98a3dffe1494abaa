"""A heartbeat as one typed value: what its agent sees, how far it has come, and what it is about to bring about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from arbor.contacts.cooldown import ContactLimits
from arbor.embedding.models import EmbeddingModel
from arbor.goals.injection import Circumstances
from arbor.goals.ordering import Scale
from arbor.heartbeat.budgets import DEFAULT_BUDGET, Budget, budget_of
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.effects import Effects
from arbor.heartbeat.failure_modes import Pulse
from arbor.heartbeat.guarding import FreeCrossing
from arbor.heartbeat.merging import FoundState
from arbor.heartbeat.record import BeatRecord, Deed, TurnRecord
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.rhythm import NextBeat, Rhythm
from arbor.heartbeat.situation import Situation, Terms
from arbor.heartbeat.tiers import ThinkTier
from arbor.heartbeat.usage import Degradation
from arbor.memory.phrases import WordLists
from arbor.selves.boundary_check import BoundaryRule, Vector, in_force
from arbor.selves.default_boundaries import DEFAULT_BOUNDARIES
from arbor.values import replace

#: Actions by which a heartbeat may spend what the limits of its budget allow; texts by their vectors.
type Vectors = Mapping[str, Vector]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The settings of the installation that a heartbeat decides by."""

    #: An agent without anything to do reflects once in so many beats.
    reflect_every: int
    #: Tokens that a model takes of which nothing else is known, and that its reply may take.
    model_context: int
    reply_tokens: int
    tier_models: Mapping[ThinkTier, Sequence[str]]
    default_model: str
    contact_limits: ContactLimits
    #: Words by which memories are weighed.
    word_lists: WordLists


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """The circumstances of one leg of a heartbeat: from a claim or a reply to the next suspension or the end."""

    now: datetime
    rules: Rules
    #: A mark for data blocks that no text can guess.
    nonce: str
    #: Vectors of the agent's model are computed in this process, so that nobody waits for them.
    embeds_here: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Selfhood:
    """The agent's self as it was stored when the beat began."""

    #: JSON of `Drives`, `Mood` and {action: [attempts, successes]}, as the agent's state has them.
    drives: dict[str, Any] = field(default_factory=dict)
    mood: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, list[int]] = field(default_factory=dict)
    #: The emotional baseline in words.
    tone: str = ""
    #: The agent's own rows of boundaries, as JSON.
    boundaries: list[dict[str, Any]] = field(default_factory=list)
    #: When a user was last in touch.
    contact: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetTerms:
    """The kind of budget (`BudgetKind`), and its allowance if it is not the default."""

    kind: str
    allowance: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Routing:
    """The models that may be asked: the agent's own, and those of its policy by tier."""

    own: str = ""
    tiers: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """Facts that only the first leg of a beat needs: they are dropped when it suspends."""

    pulse: Pulse
    #: The level of the day's budget when it was last looked at.
    level_before: Degradation
    idle_beats: int
    #: Things that the agent has heard lately and not decided to remember.
    held: int
    #: How the agent feels, -1 to 1; None: unknown.
    mood: float | None
    circumstances: Circumstances
    #: The scale that goals are weighed by.
    scale: Scale


@dataclass(frozen=True, kw_only=True, slots=True)
class Focus:
    """The text that a beat recalls about, with its vector and those of what reached the agent."""

    text: str
    vector: list[float] | None = None
    vectors: Vectors = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptParts:
    """A prompt that is about to be sent, with its sections as JSON."""

    system: str
    user: str
    sections: tuple[dict[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class StateChanges:
    """Columns of the agent's state that the beat changes; None: unchanged. All are absolute values."""

    energy: float | None = None
    bonus_actions: int | None = None
    ticks_left: int | None = None
    drives: dict[str, Any] | None = None
    mood: dict[str, Any] | None = None
    learned: dict[str, Any] | None = None
    stale_beats: int | None = None
    idle_beats: int | None = None
    notices: list[dict[str, Any]] | None = None
    last_reach_out_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MoodShift:
    """The share of the mood's change that is this beat's doing."""

    valence: float
    arousal: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Inquiry:
    """An inquiry under way: its question, and how far it is (`arbor.web`)."""

    #: Its place among the results of its turn.
    place: int
    question: str
    queries: list[str]
    depth: str
    #: A `CallPurpose`: what is being waited for.
    step: str = ""
    #: The call that read the pages, these pages [{url, title}], what failed on the way, what is remembered of the question.
    call_id: UUID | None = None
    pages: list[dict[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    remembered: list[str] = field(default_factory=list)
    #: The answer that is to be judged, as JSON.
    answer: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Beat:
    """One heartbeat of one agent. A step returns another one, by `replace`.

    `arbor.heartbeat.checkpoint` stores it between two legs, without the fields of the first group.
    """

    #: Set anew for each leg, or stored elsewhere.
    moment: Moment | None = None
    view: Situation | None = None
    opening: Opening | None = None
    focus: Focus | None = None
    prompt: PromptParts | None = None
    effects: Effects = field(default_factory=Effects)

    tenant_id: UUID
    agent_id: UUID
    heartbeat_id: UUID
    trigger: str
    #: The mark of its prompt.
    mark: str = ""
    #: The share of its interval by which the next beat is moved, so that a fleet does not beat in step.
    shift: float = 0.0

    selfhood: Selfhood
    found: FoundState = field(default_factory=FoundState)
    rhythm: Rhythm
    #: The model of the agent's vectors; None while it remembers nothing.
    embedding_model: EmbeddingModel | None = None
    #: Actions that it may use and that can be done here, and why the others cannot.
    allowed: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    budget_terms: BudgetTerms | None = None
    routing: Routing = field(default_factory=Routing)
    turns_allowed: int = 1
    #: The system prompt's part about the agent; empty once the prompt is built.
    character: str = ""

    #: Why the beat ends without a model; empty: it goes on.
    idle: str = ""
    #: A `Mode`; empty until it is chosen.
    mode: str = ""
    model: str = ""
    models_left: list[str] = field(default_factory=list)
    tier: str = ""
    energy_start: float | None = None

    #: Counts the times that the model is asked and answers; 0 before the first.
    turn: int = 0
    #: Tokens of the prompt that was asked last, and of the conversation before a further turn.
    asked_tokens: int = 0
    said_tokens: int = 0
    #: The call that was answered last, its reply, and the message that goes on from there.
    call_id: UUID | None = None
    reply_text: str = ""
    answered: UUID | None = None
    follow_up: str = ""
    #: Why the last call or reply came to nothing; why the last reply could not be read.
    failure: str = ""
    unreadable: str = ""
    invalid_replies: int = 0
    goes_on: bool = False

    reply: Reply | None = None
    earlier_reply: Reply | None = None
    #: Paths of this turn's items that a boundary left out, and each crossing so far.
    untaken: list[str] = field(default_factory=list)
    crossings: list[FreeCrossing] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    vectors: dict[str, list[float]] = field(default_factory=dict)
    #: Intents that the beat has had in hand, and those of them that this turn counted.
    served: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    rests: int = 0
    #: Heartbeats in a row without a usable reply.
    nops: int = 0
    work: list[Inquiry] = field(default_factory=list)

    #: The turn under way, and all turns before it.
    present: TurnRecord = field(default_factory=TurnRecord)
    earlier: TurnRecord = field(default_factory=TurnRecord)
    turns: int = 0
    #: Energy left after the last action; None: it has not acted.
    energy_end: float | None = None
    narrative: str = ""
    emotional_valence: float | None = None
    arousal: float | None = None
    memory_id: UUID | None = None
    state: StateChanges = field(default_factory=StateChanges)
    moved: MoodShift | None = None
    next: NextBeat | None = None
    #: The percepts that the prompt showed are marked as taken in.
    heard: bool = False

    @property
    def situation(self) -> Situation:
        """Return what the agent sees."""
        assert self.view is not None
        return self.view

    @property
    def energy(self) -> float:
        """Return the energy that earlier turns have left, or the one that the beat began with."""
        return self.situation.energy if self.energy_end is None else self.energy_end

    @property
    def situation_now(self) -> Situation:
        """Return what the agent sees, with the energy that is left. What is stored keeps the energy of the beginning."""
        return self.situation.model_copy(update={"energy": self.energy})

    @property
    def now(self) -> datetime:
        """Return the time of this leg."""
        assert self.moment is not None
        return self.moment.now

    @property
    def rules(self) -> Rules:
        """Return the settings of the installation."""
        assert self.moment is not None
        return self.moment.rules

    @property
    def nonce(self) -> str:
        """Return the mark for data blocks of this leg."""
        assert self.moment is not None
        return self.moment.nonce

    @property
    def said(self) -> Reply:
        """Return the reply; an empty one where there is none."""
        return self.reply or Reply()

    @property
    def source(self) -> str:
        """Return what a row that this beat makes names as where it comes from."""
        return f"heartbeat:{self.heartbeat_id}"

    @property
    def budget(self) -> Budget:
        """Return the budget of the agent, as the beat found it."""
        terms = self.budget_terms
        return budget_of(terms.kind, terms.allowance) if terms else DEFAULT_BUDGET

    @property
    def boundaries(self) -> tuple[BoundaryRule, ...]:
        """Return the boundaries of the agent, as the beat found them."""
        return in_force(DEFAULT_BOUNDARIES, self.selfhood.boundaries)

    @property
    def has_acted(self) -> bool:
        """Tell whether actions of the beat were carried out."""
        return self.energy_end is not None

    @property
    def work_left(self) -> int:
        """Return how many inquiries are under way."""
        return len(self.work)

    @property
    def whole(self) -> TurnRecord:
        """Return all turns so far as one."""
        return self.earlier.followed_by(self.present)

    @property
    def deeds(self) -> list[Deed]:
        """Return the actions of this turn with their results."""
        return self.present.deeds

    @property
    def record(self) -> BeatRecord:
        """Return the beat as its row shows it."""
        whole = self.whole
        return BeatRecord(
            number=0 if self.idle else self.situation.beat_number if self.view else 0,
            mode=self.mode,
            energy_start=None if self.idle else self.energy_start,
            energy_end=self.energy_end,
            model="" if self.idle else self.model,
            tier=self.tier,
            turns=self.turns,
            whole=whole,
            narrative=self.narrative,
            emotional_valence=self.emotional_valence,
            arousal=self.arousal,
            memory_id=self.memory_id,
        )

    def with_view(self, **changes: Any) -> Beat:
        """Return the beat with these fields of its situation changed."""
        return replace(self, view=self.situation.model_copy(update=changes))

    def with_present(self, **changes: Any) -> Beat:
        """Return the beat with these fields of the turn under way changed."""
        return replace(self, present=replace(self.present, **changes))

    def with_state(self, **changes: Any) -> Beat:
        """Return the beat with these columns of the agent's state changed."""
        return replace(self, state=replace(self.state, **changes))

    def bringing(self, **more: Any) -> Beat:
        """Return the beat with these effects added."""
        return replace(self, effects=self.effects.plus(**more))

    def with_decision_inputs(self, *, window: int | None = None) -> Situation:
        """Return the situation with the rules of its decisions; one that has them unchanged, for it is stored already.

        `window` is what its prompt had to fit into, in tokens.
        """
        if self.situation.terms is not None:
            return self.situation
        terms = Terms(
            allowed=self.allowed,
            missing=self.missing,
            budget=self.budget.kind.value,
            allowance=self.budget_terms.allowance if self.budget_terms else None,
            boundaries=self.selfhood.boundaries,
            window=window,
        )
        return self.situation.model_copy(update={"terms": terms})
