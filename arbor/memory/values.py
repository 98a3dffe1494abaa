"""Values of memories: before they are stored, and after they are recalled, and how long they are retained."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from operator import attrgetter
from typing import Any
from uuid import UUID

from arbor.errors import Invalid
from arbor.memory.content import check_content, check_line, check_text

#: Importance of a memory that nobody has weighed (the middle of 0 to 1).
DEFAULT_IMPORTANCE = 0.5
#: Share of relevance lost per day without access, continuous (seed 004; its origin's constant).
DEFAULT_DECAY_RATE = 0.01
#: Trust of a memory whose source is known; what comes from elsewhere is given less.
DEFAULT_TRUST = 1.0
#: Longest session, role and source of a memory, in characters.
SESSION_LENGTH = 100
ROLE_LENGTH = 100
SOURCE_LENGTH = 200


class Retention(StrEnum):
    """The kinds of memories, as far as retention depends on them."""

    #: Small talk, acknowledgments, what was said in passing.
    ROUTINE = "routine"
    #: A task was carried out.
    TASK = "task"
    #: Something was decided, approved, paid.
    DECISION = "decision"
    #: Something failed.
    ERROR = "error"
    #: Kept as long as it matters: it has no time of its own, but fades and counts for the quota.
    LASTING = "lasting"
    #: "Remember this": kept until a person says otherwise. No job of maintenance touches it.
    PERMANENT = "permanent"


#: Seed 001, "Automatic Expiration". Settings turn them; None is for ever.
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

    #: Something that happened: what was said, done, experienced.
    EPISODIC = "episodic"
    #: Something that is so: a fact.
    SEMANTIC = "semantic"
    #: How something is done.
    PROCEDURAL = "procedural"
    #: A pattern that helps to decide.
    STRATEGIC = "strategic"


class MemoryStatus(StrEnum):
    """Active memories are recalled, archived ones are not."""

    #: It is recalled.
    ACTIVE = "active"
    #: It is kept, but not recalled; it can be brought back.
    ARCHIVED = "archived"


@dataclass(frozen=True, kw_only=True)
class NewMemory:
    """A memory to be stored. Raises ContentInvalid for its text, Invalid for anything else."""

    content: str
    occurred_at: datetime
    type: MemoryType = MemoryType.EPISODIC
    #: From 0 to 1; None: appraised when it is stored (`arbor.memory.importance`).
    importance: float | None = None
    decay_rate: float = DEFAULT_DECAY_RATE
    trust: float = DEFAULT_TRUST
    #: From -1, bad, to 1, good.
    emotional_valence: float = 0.0
    #: Groups what belongs to one conversation or stretch of time; position orders it within.
    session: str = ""
    position: int = 0
    #: Who said it: a role or a speaker's name; empty for the agent's own thoughts.
    role: str = ""
    source: str = ""
    #: None: when its retention is over, counted from storage.
    expires_at: datetime | None = None
    #: None: appraised when it is stored.
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
            _check_json("detail", self.detail)
        if not 0 <= self.position <= 2**31 - 1:
            raise Invalid(f"position must be 0 to {2**31 - 1}, got {self.position}")
        for name, moment in (("occurred_at", self.occurred_at), ("expires_at", self.expires_at)):
            if moment is not None and moment.tzinfo is None:
                raise Invalid(f"{name} must have a time zone, got {moment.isoformat()}")


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not (low <= value <= high) or math.isinf(value):
        raise Invalid(f"{name} must be a number from {low} to {high}, got {value}")


def _check_json(name: str, value: Mapping[str, Any]) -> None:
    try:
        written = json.dumps(dict(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Invalid(f"{name} must be JSON: {error}") from error
    check_text(name, written.replace(r"\u0000", "\0"))


@dataclass(frozen=True, kw_only=True)
class ScoreTerms:
    """Why a memory was recalled: what each consideration added to its score."""

    #: Its meaning is near the query's.
    meaning: float = 0.0
    #: It has the query's words.
    words: float = 0.0
    #: What was said just before and after it fits the query.
    neighbours: float = 0.0
    #: It comes to mind with something that fits the query: tied to it, like it, or near it in an episode.
    association: float = 0.0
    #: Something in the same session fits the query well, or in the same episode.
    session: float = 0.0
    episode: float = 0.0
    #: The query names the one who said it.
    speaker: float = 0.0
    #: It is from the time that the query mentions.
    time: float = 0.0
    #: It has not faded: recent, or recalled recently, and important.
    recency: float = 0.0
    #: It was important when it was stored, or has become so by use.
    importance: float = 0.0
    #: Its source is trusted.
    trust: float = 0.0
    #: It is present in mind: recalled a while ago, or near to what was.
    activation: float = 0.0
    #: It felt as the agent feels now.
    mood: float = 0.0

    @property
    def total(self) -> float:
        """The score: the sum of all terms."""
        return sum(_terms(self))

    def as_dict(self) -> dict[str, float]:
        """Return the terms by name, in the order of this class."""
        return dict(zip(TERM_NAMES, _terms(self), strict=True))


#: In the order in which they are summed.
TERM_NAMES = tuple(term.name for term in fields(ScoreTerms))
_terms: Callable[[ScoreTerms], tuple[float, ...]] = attrgetter(*TERM_NAMES)


@dataclass(frozen=True, kw_only=True)
class Recalled:
    """A memory that was recalled, with its receipt."""

    id: UUID
    type: MemoryType
    content: str
    role: str
    session: str
    occurred_at: datetime
    importance: float
    terms: ScoreTerms

    @property
    def score(self) -> float:
        """The score that the ranking uses."""
        return self.terms.total
