"""When two texts say the same, so that one memory stands for both (`decay.effective_importance`: what it gains)."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from arbor.memory.lexical import words_of

#: Cosine from which two texts may say the same.
DEFAULT_SIMILARITY = 0.95
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
