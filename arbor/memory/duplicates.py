"""When two texts say the same, and what a memory gains by being remembered again."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache

from arbor.memory.lexical import words_of

#: Cosine from which two texts may say the same.
DEFAULT_SIMILARITY = 0.95
#: Share of the remaining distance to 1, times ln(1 + n) (DESIGN 7, "importance boost").
BOOST = 0.1
#: Different wordings that a memory keeps beside its own.
WORDINGS_KEPT = 8

_NEGATION_WORDS = """
    no not never none nobody nothing nowhere neither nor cannot without hardly barely scarcely
    nicht kein keine keinen nie niemals ne pas jamais
"""
_NEGATIONS = frozenset(_NEGATION_WORDS.split())


def says_the_same(one: str, other: str) -> bool:
    """Return whether two texts of nearly the same meaning may stand for each other.

    Vectors are blind for what often matters most: "the gate code is 4711" is near 4712, and near "is not 4711". So
    the digits must be the same, in order, and the negations.
    """
    return _claims(one) == _claims(other)


@lru_cache(maxsize=2_000)
def _claims(text: str) -> tuple[tuple[str, ...], frozenset[tuple[str, int]]]:
    words = [*words_of(text)]
    numbers = tuple(word for word in words if any(character.isdigit() for character in word))
    negations = Counter("not" if word.endswith("n't") else word for word in words)
    denied = ((word, count) for word, count in negations.items() if word in _NEGATIONS)
    return numbers, frozenset(denied)


def reinforced_importance(importance: float, times: int) -> float:
    """Return a memory's importance after it was remembered again so many times: from `importance` up to 1.

    `importance + 0.1 · ln(1 + n) · (1 − importance)`. Computed when asked for; the stored importance stays what it was.
    """
    share = min(1.0, BOOST * math.log1p(max(0, times)))
    return min(1.0, importance + share * (1.0 - importance))
