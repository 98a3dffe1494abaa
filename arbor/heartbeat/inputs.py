"""The inputs of a heartbeat: the settings and time of a leg, and the agent's self, budget and circumstances at its beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from arbor.agents.energy import EnergyTerms
from arbor.authority.authorization import AgentAuthority
from arbor.authority.modes import TrustPreset
from arbor.authority.reflexes import DEFAULT_TERMS, ReflexTerms
from arbor.authority.requests import Signer
from arbor.contacts.cooldown import ContactLimits
from arbor.goals.goal_rules import Circumstances
from arbor.goals.ordering import PriorityInputs
from arbor.heartbeat.failure_modes import RecentActivity
from arbor.heartbeat.influence import PastConduct
from arbor.heartbeat.tiers import ThinkTier
from arbor.heartbeat.usage import BudgetLevel
from arbor.memory.text.phrases import WordLists
from arbor.models.token_counts import CountTokens
from arbor.selves.memory_filters import BeliefFilter


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """The settings of the installation that a heartbeat decides by."""

    #: An agent without work reflects once in this number of heartbeats.
    reflect_every: int
    #: The least time from its last thought to such a reflection.
    reflect_pause: timedelta
    #: Tokens of the context window of an unknown model, and of its reply.
    model_context: int
    reply_tokens: int
    tier_models: Mapping[ThinkTier, Sequence[str]]
    default_model: str
    contact_limits: ContactLimits
    #: The time for which messages stay in the buffer.
    conversation_lifetime: timedelta
    #: Word lists of the appraisal.
    word_lists: WordLists
    reflexes: ReflexTerms = DEFAULT_TERMS
    #: The presets that no agent exceeds with a model, by provider or `provider/model`.
    model_trust: Mapping[str, TrustPreset] = field(default_factory=dict)
    #: The tokenizers of this process, by provider or beginning of a handle.
    tokenizers: Mapping[str, CountTokens] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """The time and settings of one leg."""

    now: datetime
    rules: Rules
    #: An unguessable mark for data blocks.
    nonce: str
    #: Whether the embedder runs in this process, so that vectors cost no wait.
    embeds_here: bool = True
    #: The agent's identity and rights as they are now; None: it has none, and no action runs.
    authority: AgentAuthority | None = None
    #: Signs its requests; never stored.
    signer: Signer | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Selfhood:
    """The agent's stored self at the beginning of the heartbeat."""

    #: JSON of `Drives`, `Mood` and {action: [attempts, successes]}, as the agent's state has them.
    drives: dict[str, Any] = field(default_factory=dict)
    mood: dict[str, Any] = field(default_factory=dict)
    learned: dict[str, list[int]] = field(default_factory=dict)
    #: The emotional baseline in words.
    tone: str = ""
    #: The agent's own rows of boundaries, as JSON.
    boundaries: list[dict[str, Any]] = field(default_factory=list)
    #: The last contact of a user.
    contact: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetTerms:
    """The kind of budget (`BudgetKind`), and its allowance and energy if they are not the defaults."""

    kind: str
    allowance: int | None = None
    energy: EnergyTerms | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Routing:
    """The agent's own model, the models of its policy by tier, and the token ratios of models (`arbor.models.windows`)."""

    own: str = ""
    tiers: dict[str, list[str]] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """Facts for the first leg only; not in the checkpoint."""

    recent_activity: RecentActivity
    #: The budget level at the previous heartbeat of the UTC day; normal at the first one.
    level_before: BudgetLevel
    idle_heartbeats: int
    #: The number of buffer items.
    buffer_item_count: int
    #: Valence of the mood, -1 to 1; None: unknown.
    mood: float | None
    circumstances: Circumstances
    #: What the priorities of new goals are computed from.
    priority_inputs: PriorityInputs
    #: The memory filters of its beliefs.
    filters: Sequence[BeliefFilter] = ()
    #: The agent's past, from which `arbor.heartbeat.influence` chooses.
    past: PastConduct = field(default_factory=PastConduct)
