"""The state of a heartbeat as one typed value: situation, progress and effects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AliasChoices, Field

from arbor.authority.requests import SignedRequests
from arbor.embedding.models import EmbeddingModel
from arbor.heartbeat.budgets import DEFAULT_BUDGET, Budget, budget_of
from arbor.heartbeat.decision import Decision
from arbor.heartbeat.dialogue import VoiceView, hard_decisions
from arbor.heartbeat.effects import Effects
from arbor.heartbeat.guards import ItemBoundaryMatch
from arbor.heartbeat.inputs import BudgetTerms, Moment, Opening, Routing, Rules, Selfhood
from arbor.heartbeat.pacing import NextHeartbeat, SchedulePolicy
from arbor.heartbeat.replies.items import Dropped
from arbor.heartbeat.replies.reply import Reply
from arbor.heartbeat.results import ActionRecord, ActionResult, RoundTripRecord
from arbor.heartbeat.situation import MemoryView, Situation, Terms
from arbor.heartbeat.state_merge import FoundState
from arbor.memory.recall.recall_request import RecallFilter, RecallRequest
from arbor.memory.values import Recalled
from arbor.models.windows import PromptLimits
from arbor.selves.boundaries import DEFAULT_BOUNDARIES, BoundaryRule
from arbor.selves.boundary_check import Vector, boundaries_in_force
from arbor.values import replace

#: Vectors by their texts.
type Vectors = Mapping[str, Vector]


@dataclass(frozen=True, kw_only=True, slots=True)
class Focus:
    """The query of the recall, its vector, and the vectors of the percepts."""

    text: str
    vector: list[float] | None = None
    vectors: Vectors = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptParts:
    """A prompt before it is sent; sections as JSON."""

    system: str
    user: str
    sections: tuple[dict[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class StateChanges:
    """Columns of the agent's state that the heartbeat changes, as absolute values; None: unchanged."""

    energy: float | None = None
    bonus_actions: int | None = None
    ticks_left: int | None = None
    drives: dict[str, Any] | None = None
    mood: dict[str, Any] | None = None
    learned: dict[str, Any] | None = None
    #: `stale_beats` and `idle_beats` in older checkpoints.
    stale_heartbeats: Annotated[
        int | None, Field(validation_alias=AliasChoices("stale_heartbeats", "stale_beats"))
    ] = None
    idle_heartbeats: Annotated[
        int | None, Field(validation_alias=AliasChoices("idle_heartbeats", "idle_beats"))
    ] = None
    notices: list[dict[str, Any]] | None = None
    last_reach_out_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MoodShift:
    """The change of the mood by this heartbeat alone."""

    valence: float
    arousal: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Inquiry:
    """A running inquiry (`arbor.web`)."""

    #: The index of the inquiry's action in the results of its round trip.
    place: int
    question: str
    queries: list[str]
    depth: str
    #: The `CallPurpose` of the pending call.
    step: str = ""
    #: The call that read the pages, the pages [{url, title}], errors, and recalled texts.
    call_id: UUID | None = None
    pages: list[dict[str, str]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    remembered: list[str] = field(default_factory=list)
    #: The answer under review, as JSON.
    answer: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A pending call of a tool (`arbor.tools`)."""

    #: The index of the call's action in the results of its round trip.
    place: int
    action: str
    tool_id: UUID
    fingerprint: str
    arguments: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class HeartbeatState:
    """The state of one heartbeat. A step returns a changed copy.

    `arbor.heartbeat.checkpoint` persists it between legs; a field with an alias is stored under the alias.
    """

    #: Not in the checkpoint: set for each leg, or stored elsewhere.
    moment: Moment
    situation: Situation
    opening: Opening | None = None
    focus: Focus | None = None
    prompt: PromptParts | None = None
    effects: Effects = field(default_factory=Effects)

    tenant_id: UUID
    agent_id: UUID
    heartbeat_id: UUID
    trigger: str
    #: The data mark of its prompt.
    mark: str = ""
    #: Jitter of the next due time, as a share of the interval.
    shift: float = 0.0

    selfhood: Selfhood
    found: FoundState = field(default_factory=FoundState)
    #: The interval and the active hours of the agent.
    schedule: Annotated[SchedulePolicy, Field(alias="rhythm")]
    #: The embedding model; None for an agent without memories.
    embedding_model: EmbeddingModel | None = None
    #: Permitted and available actions, and the reasons why permitted ones are unavailable.
    allowed: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    budget_terms: BudgetTerms | None = None
    routing: Routing = field(default_factory=Routing)
    round_trips_allowed: Annotated[
        int, Field(validation_alias=AliasChoices("round_trips_allowed", "turns_allowed"))
    ] = 1
    #: The character prompt; empty once the prompt is built, and not in the checkpoint.
    character: str = ""

    #: The skip reason; empty: the heartbeat goes on.
    idle: str = ""
    #: A `Mode`; empty before `select_mode`.
    mode: str = ""
    model: str = ""
    models_left: list[str] = field(default_factory=list)
    tier: str = ""
    energy_start: float | None = None

    #: The number of the round trip; 0 before the first.
    round_trip: Annotated[int, Field(validation_alias=AliasChoices("round_trip", "turn"))] = 0
    #: Tokens of the last prompt, and of the conversation before a further round trip.
    asked_tokens: int = 0
    conversation_tokens: Annotated[int, Field(alias="said_tokens")] = 0
    #: The last completed call, its reply, the call that the next question follows, and the message of that question.
    call_id: UUID | None = None
    reply_text: str = ""
    answered: UUID | None = None
    follow_up: str = ""
    #: Why the last call or reply failed; why the last reply was unreadable.
    failure: str = ""
    unreadable: str = ""
    invalid_replies: int = 0
    goes_on: bool = False

    #: The inner voices of the policy, 0 for none; the round trip whose reply they were asked about, its hard decisions, and
    #: the views so far.
    voices: int = 0
    deliberated: int = 0
    hard: list[str] = field(default_factory=list)
    views: list[VoiceView] = field(default_factory=list)

    reply: Reply | None = None
    earlier_reply: Reply | None = None
    #: All boundary matches so far.
    boundary_matches: Annotated[list[ItemBoundaryMatch], Field(alias="crossings")] = field(
        default_factory=list
    )
    decisions: list[Decision] = field(default_factory=list)
    #: The requests of the running actions, as the agent signed them.
    signed: SignedRequests | None = None
    vectors: dict[str, list[float]] = field(default_factory=dict)
    #: Memories that its actions recalled, and answers of tools. Apart from the situation, which is stored once.
    recalled: list[MemoryView] = field(default_factory=list)
    #: Intents locked by this heartbeat, and those of them that this round trip counted.
    served: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    rests: int = 0
    #: Heartbeats in a row without a usable reply.
    nops: int = 0
    work: list[Inquiry] = field(default_factory=list)
    tool_calls: list[ToolCall] = field(default_factory=list)

    #: The current round trip, and all before it.
    present: RoundTripRecord = field(default_factory=RoundTripRecord)
    earlier: RoundTripRecord = field(default_factory=RoundTripRecord)
    round_trips: Annotated[int, Field(validation_alias=AliasChoices("round_trips", "turns"))] = 0
    #: Energy after the actions of the latest round trip that acted; None before the first.
    energy_end: float | None = None
    narrative: str = ""
    emotional_valence: float | None = None
    arousal: float | None = None
    memory_id: UUID | None = None
    state: StateChanges = field(default_factory=StateChanges)
    moved: MoodShift | None = None
    next: NextHeartbeat | None = None
    #: The percepts of the prompt are marked as taken in.
    percepts_received: Annotated[bool, Field(alias="heard")] = False
    #: The positions of subscriptions after the signals of the prompt: {source: {id of the subscription: position}}.
    signal_positions: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def energy(self) -> float:
        return self.situation.energy if self.energy_end is None else self.energy_end

    @property
    def situation_now(self) -> Situation:
        """Return the situation with the current energy and recalled memories; the stored one stays as it was."""
        recalled = [*self.situation.recalled, *self.recalled]
        return self.situation.model_copy(update={"energy": self.energy, "recalled": recalled})

    @property
    def now(self) -> datetime:
        return self.moment.now

    @property
    def rules(self) -> Rules:
        return self.moment.rules

    @property
    def nonce(self) -> str:
        return self.moment.nonce

    @property
    def reply_or_empty(self) -> Reply:
        return self.reply or Reply()

    @property
    def source(self) -> str:
        """Return the `source` of rows that this heartbeat creates."""
        return f"heartbeat:{self.heartbeat_id}"

    @property
    def budget(self) -> Budget:
        terms = self.budget_terms
        return budget_of(terms.kind, terms.allowance, terms.energy) if terms else DEFAULT_BUDGET

    @property
    def boundaries(self) -> tuple[BoundaryRule, ...]:
        return boundaries_in_force(DEFAULT_BOUNDARIES, self.selfhood.boundaries)

    @property
    def has_acted(self) -> bool:
        return self.energy_end is not None

    @property
    def work_left(self) -> int:
        return len(self.work) + len(self.tool_calls)

    @property
    def dialogue_due(self) -> bool:
        """Return whether the inner voices are to be asked about the reply: once in a round trip, never by rule."""
        return (
            self.voices > 0
            and self.deliberated < self.round_trip
            and not self.situation.model_is_reflex
            and self.situation.degradation.may_follow_up
            and any(hard_decisions(self.reply_or_empty, self.situation))
        )

    @property
    def voices_left(self) -> int:
        return max(self.voices - len(self.views), 0) if self.hard else 0

    @property
    def whole(self) -> RoundTripRecord:
        """Return all round trips so far as one record."""
        return self.earlier.followed_by(self.present)

    @property
    def action_records(self) -> list[ActionRecord]:
        return self.present.action_records

    def with_situation(self, **changes: Any) -> HeartbeatState:
        """Return a copy with changed fields of the situation."""
        return replace(self, situation=self.situation.model_copy(update=changes))

    def with_present(self, **changes: Any) -> HeartbeatState:
        """Return a copy with changed fields of the current round trip."""
        return replace(self, present=replace(self.present, **changes))

    def with_dropped(self, dropped: Iterable[Dropped]) -> HeartbeatState:
        """Return a copy with further dropped items of the current round trip's reply."""
        return self.with_present(dropped=[*self.present.dropped, *dropped])

    def with_result(self, place: int, result: ActionResult) -> HeartbeatState:
        """Return a copy with another result of an action of the current round trip."""
        action_records = [*self.action_records]
        action_records[place] = replace(action_records[place], result=result)
        return self.with_present(action_records=action_records)

    def with_state(self, **changes: Any) -> HeartbeatState:
        """Return a copy with changed columns of the agent's state."""
        return replace(self, state=replace(self.state, **changes))

    def with_effects(self, **more: Any) -> HeartbeatState:
        """Return a copy with more effects."""
        return replace(self, effects=self.effects.plus(**more))

    def with_recall(self, memories: Iterable[Recalled]) -> HeartbeatState:
        """Return a copy with a recall of these memories as an effect, if there are any."""
        scores = {memory.id: memory.score for memory in memories}
        return self.with_effects(recalls=(scores,)) if scores else self

    def recall_of(self, text: str, *, limit: int, only: RecallFilter, **more: Any) -> RecallRequest:
        """Return the request for a recall now, by the vector of the text if it is known."""
        common = {"vector": self.vectors.get(text), "model": self.embedding_model, "now": self.now}
        return RecallRequest(agent_id=self.agent_id, text=text, limit=limit, only=only, **{**common, **more})

    def with_decision_inputs(self, limits: PromptLimits | None = None) -> Situation:
        """Return the situation with its decision inputs, the limits of its prompt among them; unchanged if it has them."""
        if self.situation.terms is not None:
            return self.situation
        own = self.budget_terms
        terms = Terms(
            allowed=self.allowed,
            missing=self.missing,
            budget=self.budget.kind.value,
            allowance=own.allowance if own else None,
            costs=own.energy.costs if own and own.energy else {},
            boundaries=self.selfhood.boundaries,
            window=limits.window if limits else None,
            reply_tokens=limits.reply_tokens if limits else None,
            tokenizer=limits.tokenizer if limits else "",
        )
        return self.situation.model_copy(update={"terms": terms})
