"""Memory filters of beliefs: a belief colors which memories come to mind by themselves (seed 004, "Worldview")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ValidationError, model_validator

from arbor.errors import Invalid
from arbor.memory.values import MemoryType, Recalled
from arbor.models.json_text import is_storable
from arbor.selves.boundary_check import compile_patterns, fold_text
from arbor.selves.values import BeliefStatus

#: The most rules of a belief, and patterns of a rule.
MAX_FILTERS = 10
MAX_PATTERNS = 20
PATTERN_LENGTH = 100
#: The share by which a rule of a belief of confidence 1 raises or lowers a memory's score.
STRENGTH = 0.5
#: Memories to recall for each one that is shown, so that a favored one can move up and a hidden one is replaced.
CONSIDERED = 3


class FilterEffect(StrEnum):
    """The effect of a rule on the memories that it matches."""

    #: They come to mind more easily.
    FAVOR = "favor"
    #: They come to mind less easily.
    DIM = "dim"
    #: They do not come to mind by themselves; the agent finds them when it looks for them.
    HIDE = "hide"


def _bad_word(word: str) -> str:
    if not is_storable(word):
        return f"a word of a memory filter has no NUL character or half a surrogate pair, got {word!r}"
    return f"a word of a memory filter has 1 to {PATTERN_LENGTH} characters, not only blanks and *, as tide or gossip*, got {word!r}"


class MemoryFilter(BaseModel, frozen=True, extra="forbid"):
    """One rule: a memory matches if it contains one of the patterns (`word*` is a beginning) and is of one of the types."""

    effect: FilterEffect
    patterns: tuple[str, ...] = ()
    types: tuple[MemoryType, ...] = ()

    @model_validator(mode="after")
    def _can_match(self) -> MemoryFilter:
        if not self.patterns and not self.types:
            raise ValueError("a memory filter needs a word or a type of memory; it would match everything")
        if len(self.patterns) > MAX_PATTERNS:
            raise ValueError(f"a memory filter has at most {MAX_PATTERNS} words, got {len(self.patterns)}")
        for pattern in self.patterns:
            if not pattern.strip(" *") or len(pattern) > PATTERN_LENGTH or not is_storable(pattern):
                raise ValueError(_bad_word(pattern))
        return self

    def matches(self, memory: Recalled) -> bool:
        """Return whether the rule applies to a memory."""
        if self.types and memory.type not in self.types:
            return False
        return (
            not self.patterns or compile_patterns(self.patterns).search(fold_text(memory.content)) is not None
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BeliefFilter:
    """A rule of a belief, and the belief's confidence, from 0 to 1."""

    rule: MemoryFilter
    confidence: float

    @property
    def factor(self) -> float:
        """Return the factor of a matching memory's score; 0 hides it."""
        match self.rule.effect:
            case FilterEffect.FAVOR:
                return 1 + STRENGTH * self.confidence
            case FilterEffect.DIM:
                return 1 - STRENGTH * self.confidence
            case FilterEffect.HIDE:
                return 0.0


def read_filters(stored: Iterable[Mapping[str, Any]]) -> list[MemoryFilter]:
    """Read rules from JSON. Raises Invalid."""
    rules = list(stored)
    if len(rules) > MAX_FILTERS:
        raise Invalid(f"a belief has at most {MAX_FILTERS} memory filters, got {len(rules)}")
    try:
        return [MemoryFilter.model_validate(rule) for rule in rules]
    except ValidationError as error:
        (fault, *_) = error.errors(include_url=False)
        raise Invalid(f"{'.'.join(map(str, fault['loc']))} {fault['msg']}".strip()) from error


def read_new_filter(given: Mapping[str, Any]) -> MemoryFilter:
    """Read a rule to add, without words of blanks, which stored ones may have. Raises Invalid."""
    (rule,) = read_filters([given])
    for pattern in rule.patterns:
        if not pattern.strip("*").strip():
            raise Invalid(_bad_word(pattern))
    return rule


def filters_of(beliefs: Iterable[Mapping[str, Any]]) -> list[BeliefFilter]:
    """Return the rules of the beliefs that are held; a doubted belief filters nothing."""
    return [
        BeliefFilter(rule=rule, confidence=belief["confidence"])
        for belief in beliefs
        if belief["filters"] and belief["status"] == BeliefStatus.HELD
        for rule in read_filters(belief["filters"])
    ]


def apply_filters(memories: Sequence[Recalled], filters: Sequence[BeliefFilter]) -> list[Recalled]:
    """Return recalled memories in the order that the rules give them, without the hidden ones."""
    if not filters:
        return list(memories)
    factors = {memory.id: _factor(memory, filters) for memory in memories}
    visible = [memory for memory in memories if factors[memory.id]]
    return sorted(visible, key=lambda memory: -memory.score * factors[memory.id])


def _factor(memory: Recalled, filters: Sequence[BeliefFilter]) -> float:
    factor = 1.0
    for belief_filter in filters:
        if belief_filter.rule.matches(memory):
            factor *= belief_filter.factor
    return factor
