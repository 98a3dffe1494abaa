"""When two titles name one goal, though not in the same words."""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz.distance import JaroWinkler

from arbor.memory.english import STOP_WORDS
from arbor.memory.lexical import term_of, words_of

# Proposals are compared as whole texts, from 0.85 (seed 000, 2). Titles are shorter: "Chart the north reef" and "Chart
# the south reef" reach 0.94, "Goal 1" and "Goal 2" 0.93. So they are compared word by word, and each pair must reach this:
# a plural, an inflection and a slip of the pen do ("harbour", "harbor": 0.97), another word does not ("north", "south": 0.73).
LIKE_FROM = 0.9


def same_goal(title: str, other: str) -> bool:
    """Tell whether two titles name one goal: each telling word of one has its like in the other. Numbers must be equal."""
    mine, theirs = _telling(title), list(_telling(other))
    if not mine or len(mine) != len(theirs):
        return False
    for word in mine:
        like = next((each for each in theirs if _like(word, each)), None)
        if like is None:
            return False
        theirs.remove(like)
    return True


@lru_cache(maxsize=10_000)
def _telling(title: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(words_of(title)))
    return tuple(term_of(word) for word in words if word not in STOP_WORDS) or words


def _like(word: str, other: str) -> bool:
    if word == other:
        return True
    if not (word.isalpha() and other.isalpha()):
        return False
    return JaroWinkler.similarity(word, other) >= LIKE_FROM


def shared_words(text: str, other: str) -> frozenset[str]:
    """Return the telling words, as stems, that two texts have in common."""
    return frozenset(_telling(text)) & frozenset(_telling(other))
