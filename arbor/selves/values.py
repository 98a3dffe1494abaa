"""Beliefs, aspects and preferences of an agent (seed 004, "Identity and Worldview")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from arbor.errors import Invalid
from arbor.models.json_text import is_storable

#: The longest text of a belief or aspect, in characters: the self is part of the prompt at every heartbeat.
TEXT_LENGTH = 1_000
#: The longest source of a belief or aspect: the same as that of a memory.
SOURCE_LENGTH = 200
#: The most beliefs and aspects of an agent, without dropped ones: well above the number in a prompt.
MAX_BELIEFS = 200
MAX_ASPECTS = 100
#: The most aspects, beliefs and preferences in a prompt, and how many of the aspects and beliefs are the most stable
#: ones. The others are chosen by relevance and recency (`arbor.selves.salience`).
ASPECTS_SHOWN = 6
ASPECTS_FIRM = 3
BELIEFS_SHOWN = 8
BELIEFS_FIRM = 4
PREFERENCES_SHOWN = 12

#: The most traits, values and capabilities of an agent each (the origin of seed 000): all are in its system prompt.
#: A template may have more.
MAX_OF_KIND = 15
#: The most aspects that a prompt is chosen from: a template alone may bring more than a hundred.
ASPECTS_READ = 250
#: The longest new trait, value or capability: one line of the system prompt.
QUALITY_LENGTH = 200
#: The defaults for beliefs and aspects that a person adds.
DEFAULT_CONFIDENCE = 0.7
DEFAULT_STABILITY = 0.5
DEFAULT_STRENGTH = 0.5
#: The lengths of the columns of a preference.
KEY_LENGTH = 60
VALUE_LENGTH = 300
#: The most preferences of an agent: each conversation's prompt shows some.
MAX_PREFERENCES = 50
_KEY = re.compile(r"[a-z0-9](?:[a-z0-9 _.-]*[a-z0-9])?")


class BeliefCategory(StrEnum):
    """The subject of a belief (seed 004, "Worldview")."""

    #: The agent itself.
    SELF = "self"
    #: Other agents and people.
    OTHERS = "others"
    #: The world.
    WORLD = "world"
    #: Time: past, present and future.
    TIME = "time"
    #: Causes and effects.
    CAUSALITY = "causality"


class AspectKind(StrEnum):
    """The kind of an aspect (seed 004, "Identity")."""

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
    #: How am I?
    TRAIT = "trait"
    #: What am I good at?
    CAPABILITY = "capability"


#: The kinds that are lines of the system prompt; the other aspects are chosen by what a prompt is about.
QUALITIES = (AspectKind.TRAIT, AspectKind.VALUE, AspectKind.CAPABILITY)


class BeliefStatus(StrEnum):
    """The status of a belief or aspect."""

    #: Held.
    HELD = "held"
    #: Held, but doubted.
    QUESTIONED = "questioned"
    #: No longer held; it is still stored, and may be held again.
    DROPPED = "dropped"


@dataclass(frozen=True, kw_only=True)
class NewBelief:
    """A belief to add. Raises Invalid."""

    statement: str
    category: BeliefCategory
    confidence: float = DEFAULT_CONFIDENCE
    stability: float = DEFAULT_STABILITY
    #: The origin: `template:NAME`, `operator`.
    source: str = ""

    def __post_init__(self) -> None:
        check_text("a belief's statement", self.statement)
        check_share("confidence", self.confidence)
        check_share("stability", self.stability)
        check_text("source", self.source, longest=SOURCE_LENGTH, empty=True)


@dataclass(frozen=True, kw_only=True)
class BeliefRevision:
    """A change of a belief; None leaves a value unchanged."""

    confidence: float | None = None
    stability: float | None = None
    status: BeliefStatus | None = None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class NewAspect:
    """An aspect to add. Raises Invalid."""

    content: str
    kind: AspectKind
    stability: float = DEFAULT_STABILITY
    source: str = ""
    #: By kind the strength of a trait, the importance of a value, the proficiency of a capability.
    strength: float = DEFAULT_STRENGTH

    def __post_init__(self) -> None:
        check_text("an aspect's content", self.content)
        check_share("stability", self.stability)
        check_share("strength", self.strength)
        check_text("source", self.source, longest=SOURCE_LENGTH, empty=True)


@dataclass(frozen=True, kw_only=True)
class AspectRevision:
    """A change of an aspect; None leaves a value unchanged."""

    strength: float | None = None
    stability: float | None = None
    status: BeliefStatus | None = None
    reason: str = ""


def check_text(name: str, text: str, *, longest: int = TEXT_LENGTH, empty: bool = False) -> None:
    """Raise Invalid unless the text can be stored unchanged."""
    if not text.strip() and not empty:
        raise Invalid(f"{name} needs a text")
    if len(text) > longest:
        raise Invalid(f"{name} must have at most {longest:,} characters, got {len(text):,}")
    if not is_storable(text):
        raise Invalid(f"{name} must not contain a NUL character or half a surrogate pair")


def check_quality(kind: AspectKind, content: str) -> None:
    """Raise Invalid for a new trait, value or capability that is no single, short line of the system prompt."""
    if kind not in QUALITIES:
        return
    check_text(f"a {kind}", content, longest=QUALITY_LENGTH)
    if len(content.strip().splitlines()) != 1:
        raise Invalid(f"a {kind} is one line")


def check_share(name: str, value: float) -> None:
    """Raise Invalid unless the value is a number from 0 to 1."""
    if not 0 <= value <= 1:
        raise Invalid(f"{name} must be a number from 0 to 1, got {value}")


def check_preference(key: str, value: str) -> tuple[str, str]:
    """Normalize key and value: the key in lower case, no white space around either. Raises Invalid."""
    key, value = key.strip().casefold(), value.strip()
    if len(key) > KEY_LENGTH or not _KEY.fullmatch(key):
        raise Invalid(
            f"a preference's key is 1 to {KEY_LENGTH} letters from a to z, digits, spaces, dots, dashes and underscores, beginning and"
            f" ending with a letter or digit; got {key[:80]!r}"
        )
    check_text("a preference", value, longest=VALUE_LENGTH)
    if len(value.splitlines()) != 1:
        raise Invalid("a preference is one line")
    return key, value
