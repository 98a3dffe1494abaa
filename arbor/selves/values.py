"""What an agent takes itself and the world to be: beliefs and aspects of its identity (seed 004, "Identity and Worldview")."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from arbor.errors import Invalid

#: Every agent carries its self in its prompt at every heartbeat, so a text has a ceiling, in characters: our choice.
TEXT_LENGTH = 1_000
#: The same as on a memory's row.
SOURCE_LENGTH = 200
#: How many of each an agent may have that are not dropped: our choice, well above what a prompt shows.
MAX_BELIEFS = 200
MAX_ASPECTS = 100

#: Of what a person adds without saying: fairly sure, and neither firm nor easily changed.
DEFAULT_CONFIDENCE = 0.7
DEFAULT_STABILITY = 0.5


class BeliefCategory(StrEnum):
    """What a belief is about (seed 004, "Worldview")."""

    #: The agent itself.
    SELF = "self"
    #: Other agents and people.
    OTHERS = "others"
    #: How things are.
    WORLD = "world"
    #: What was, is and will be.
    TIME = "time"
    #: What brings what about.
    CAUSALITY = "causality"
    #: What is worth something.
    VALUES = "values"


class AspectKind(StrEnum):
    """Which side of an identity an aspect is (seed 004, "Identity")."""

    #: Who am I?
    SELF_CONCEPT = "self_concept"
    #: What can I do?
    AGENCY = "agency"
    #: What am I there for?
    PURPOSE = "purpose"
    #: What do I hold dear?
    VALUE = "value"
    #: How do I feel when nothing happens?
    EMOTIONAL_BASELINE = "emotional_baseline"
    #: What alarms me?
    THREAT_SENSITIVITY = "threat_sensitivity"
    #: How much do I hold on to what I am?
    CHANGE_RESISTANCE = "change_resistance"


class Standing(StrEnum):
    """Whether a part of the self is the agent's own."""

    #: It is.
    HELD = "held"
    #: It is, and is doubted.
    QUESTIONED = "questioned"
    #: No longer; it is kept for the record, and may be taken up again.
    DROPPED = "dropped"


@dataclass(frozen=True, kw_only=True)
class NewBelief:
    """A belief to be held. Raises Invalid."""

    statement: str
    category: BeliefCategory
    confidence: float = DEFAULT_CONFIDENCE
    stability: float = DEFAULT_STABILITY
    #: Where it comes from: `template:NAME`, `operator`.
    source: str = ""

    def __post_init__(self) -> None:
        check_text("a belief's statement", self.statement)
        check_share("confidence", self.confidence)
        check_share("stability", self.stability)
        check_text("source", self.source, longest=SOURCE_LENGTH, empty=True)


@dataclass(frozen=True, kw_only=True)
class NewAspect:
    """An aspect of an identity to be taken on. Raises Invalid."""

    content: str
    kind: AspectKind
    stability: float = DEFAULT_STABILITY
    source: str = ""

    def __post_init__(self) -> None:
        check_text("an aspect's content", self.content)
        check_share("stability", self.stability)
        check_text("source", self.source, longest=SOURCE_LENGTH, empty=True)


def check_text(name: str, text: str, *, longest: int = TEXT_LENGTH, empty: bool = False) -> None:
    """Raise Invalid unless the text can be stored exactly as it is."""
    if not text.strip() and not empty:
        raise Invalid(f"{name} needs a text")
    if len(text) > longest:
        raise Invalid(f"{name} must have at most {longest:,} characters, got {len(text):,}")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise Invalid(f"{name} must not hold a NUL character or half a surrogate pair")


def check_share(name: str, value: float) -> None:
    """Raise Invalid unless the value is a number from 0 to 1."""
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise Invalid(f"{name} must be a number from 0 to 1, got {value}")
