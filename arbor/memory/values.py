"""Values of memories: types, retention, new memories, and recalled memories with their scores."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any
from uuid import UUID

from arbor.clock import check_time_zone
from arbor.errors import Invalid
from arbor.memory.content import check_content, check_json, check_line

#: Importance of a memory that was not appraised (the middle of 0 to 1).
DEFAULT_IMPORTANCE = 0.5
#: Share of relevance lost per day without access, continuously compounded (a constant of seed 004).
DEFAULT_DECAY_RATE = 0.01
#: Trust of a memory whose source is known; memories from other sources get less.
DEFAULT_TRUST = 1.0
#: Longest session, role and source of a memory, in characters.
SESSION_LENGTH = 100
ROLE_LENGTH = 100
SOURCE_LENGTH = 200


class Retention(StrEnum):
    """Kinds of memories that determine how long a memory is kept."""

    #: Small talk, acknowledgments, casual remarks.
    ROUTINE = "routine"
    #: A task was carried out.
    TASK = "task"
    #: Something was decided, approved, paid.
    DECISION = "decision"
    #: Something failed.
    ERROR = "error"
    #: Without an expiry, but it fades and counts towards the quota.
    LASTING = "lasting"
    #: "Remember this": kept until a person decides otherwise. No maintenance job archives it, unless an expiry was given.
    PERMANENT = "permanent"


#: The session of an agent's own heartbeats. It never ends, so sharing it says nothing about two memories.
HEARTBEATS_SESSION = "heartbeats"

#: Seed 001, "Automatic Expiration". Settings override them; None means no expiry.
DEFAULT_TTL: dict[Retention, timedelta | None] = {
    Retention.ROUTINE: timedelta(days=7),
    Retention.TASK: timedelta(days=30),
    Retention.DECISION: timedelta(days=90),
    Retention.ERROR: timedelta(days=14),
    Retention.LASTING: None,
    Retention.PERMANENT: None,
}


class MemoryType(StrEnum):
    """The types of memories (seed 004, "Four Types")."""

    #: An event: something said, done or experienced.
    EPISODIC = "episodic"
    #: A fact.
    SEMANTIC = "semantic"
    #: A way to do something.
    PROCEDURAL = "procedural"
    #: A pattern that helps to decide.
    STRATEGIC = "strategic"


class MemoryStatus(StrEnum):
    """Statuses of a stored memory."""

    #: Available to recall.
    ACTIVE = "active"
    #: Stored but not available to recall; can be restored.
    ARCHIVED = "archived"


@dataclass(frozen=True, kw_only=True)
class NewMemory:
    """A memory to be stored. Raises ContentInvalid for its text, Invalid for anything else."""

    content: str
    occurred_at: datetime
    type: MemoryType = MemoryType.EPISODIC
    #: From 0 to 1; None: the memory is appraised when stored (`arbor.memory.importance`).
    importance: float | None = None
    decay_rate: float = DEFAULT_DECAY_RATE
    trust: float = DEFAULT_TRUST
    #: From -1 (bad) to 1 (good).
    emotional_valence: float = 0.0
    #: Name of the conversation or stretch of time that the memory belongs to; `position` orders the memories of a session.
    session: str = ""
    position: int = 0
    #: Role or name of the speaker; empty for the agent's own thoughts.
    role: str = ""
    source: str = ""
    #: None: computed from the retention when the memory is stored.
    expires_at: datetime | None = None
    #: None: the memory is appraised when stored.
    retention: Retention | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_content(self.content)
        if self.importance is not None:
            _check_range("importance", self.importance, 0, 1)
        _check_range("trust", self.trust, 0, 1)
        _check_range("emotional valence", self.emotional_valence, -1, 1)
        _check_range("decay rate per day", self.decay_rate, 0, math.inf)
        check_line("session", self.session, SESSION_LENGTH)
        check_line("role", self.role, ROLE_LENGTH)
        check_line("source", self.source, SOURCE_LENGTH)
        if self.detail:
            check_json("detail", self.detail)
        if not 0 <= self.position <= 2**31 - 1:
            raise Invalid(f"position must be 0 to {2**31 - 1}, got {self.position}")
        check_time_zone("occurred_at", self.occurred_at)
        check_time_zone("expires_at", self.expires_at)


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high or value > sys.float_info.max:
        raise Invalid(f"{name} must be a number from {low} to {high}, got {value}")


@dataclass(frozen=True, kw_only=True)
class ScoreComponents:
    """Score components of a recalled memory: the addends of its score."""

    #: The memory is near the query in meaning.
    meaning: float = 0.0
    #: The memory contains words of the query.
    words: float = 0.0
    #: The memories just before and after it match the query.
    neighbours: float = 0.0
    #: A memory that matches the query is related to it, similar to it, or near it in an episode.
    association: float = 0.0
    #: A memory of the same session, or of the same episode, matches the query well; the memory itself counts too.
    session: float = 0.0
    episode: float = 0.0
    #: The query names the speaker.
    speaker: float = 0.0
    #: The memory occurred in the time that the query mentions.
    time: float = 0.0
    #: The memory has not faded: recent, or recalled recently, and important.
    recency: float = 0.0
    #: The memory was appraised as important, or its importance was raised by use.
    importance: float = 0.0
    #: The source of the memory is trusted.
    trust: float = 0.0
    #: The memory, or a memory near it, was recalled recently.
    activation: float = 0.0
    #: The emotional valence of the memory has the same sign as the agent's mood.
    mood: float = 0.0

    @property
    def total(self) -> float:
        """The score: the sum of all components."""
        return sum(_components(self))

    def as_dict(self) -> dict[str, float]:
        """Return the components by name, in the order of this class."""
        return dict(zip(COMPONENT_NAMES, _components(self), strict=True))


#: The names of the components, in the order of summation.
COMPONENT_NAMES = tuple(component.name for component in fields(ScoreComponents))
_components: Callable[[ScoreComponents], tuple[float, ...]] = attrgetter(*COMPONENT_NAMES)


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """A recalled memory with its score components."""

    id: UUID
    type: MemoryType
    content: str
    role: str
    session: str
    occurred_at: datetime
    importance: float
    components: ScoreComponents
    #: How far the memory is believed, 0 to 1.
    trust: float = DEFAULT_TRUST
    #: The lines of the memory's detail: steps, outcome, confidence… (`arbor.memory.detail_text`).
    details: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The score that the ranking uses."""
        return self.components.total
