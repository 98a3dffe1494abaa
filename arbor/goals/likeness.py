"""Compare titles: find two that name one goal in different words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import JaroWinkler

from arbor.memory.english import STOP_WORDS
from arbor.memory.lexical import term_of, words_of

# Proposals are compared as whole texts, from 0.85 (seed 000, 2). Titles are shorter: "Chart the north reef" and "Chart
# the south reef" reach 0.94, "Goal 1" and "Goal 2" 0.93. So they are compared word by word, inflections taken off, and each
# pair must reach this: a slip of the pen does ("harbour", "harbor": 0.97), another word does not ("Jon", "John": 0.93).
LIKE_FROM = 0.95

#: Words that turn a title round; besides them, those that end in n't.
_NEGATIONS = frozenset({"not", "no", "never", "none", "nor", "neither", "cannot", "nothing", "nobody"})
#: Stop words that tell two goals apart where one title has the first and the other the second.
_OPPOSITES = (
    ("with", "without"),
    ("to", "from"),
    ("up", "down"),
    ("on", "off"),
    ("in", "out"),
    ("over", "under"),
    ("above", "below"),
    ("before", "after"),
    ("for", "against"),
    ("more", "less"),
)
_WRITTEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class _Word(NamedTuple):
    """A significant word: as written, its stem, and whether it is written like a name."""

    said: str
    stem: str
    is_name: bool


def same_goal(title: str, other: str) -> bool:
    """Return whether two titles name one goal: each significant word of one has a match in the other.

    Numbers, names and the number of negations must be equal.
    """
    mine, theirs = _telling(title), list(_telling(other))
    if not mine or len(mine) != len(theirs) or _opposed(title, other):
        return False
    for word in mine:
        like = next((candidate for candidate in theirs if _like(word, candidate)), None)
        if like is None:
            return False
        theirs.remove(like)
    return True


@lru_cache(maxsize=10_000)
def _telling(title: str) -> tuple[_Word, ...]:
    # A capital at the beginning does not make a name.
    names = {word.casefold() for word in _WRITTEN.findall(title)[1:] if word[0].isupper()}
    words = [_Word(word, term_of(word), word in names) for word in dict.fromkeys(words_of(title))]
    return tuple(word for word in words if word.said not in STOP_WORDS) or tuple(words)


@lru_cache(maxsize=10_000)
def _turns(title: str) -> tuple[int, frozenset[str]]:
    """Return the number of negations in a title, and its words."""
    words = list(words_of(title))
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words), frozenset(words)


def _opposed(title: str, other: str) -> bool:
    (denied, mine), (denied_there, theirs) = _turns(title), _turns(other)
    if denied != denied_there:
        return True
    only_mine, only_theirs = mine - theirs, theirs - mine
    return any(
        (word in only_mine and opposite in only_theirs) or (opposite in only_mine and word in only_theirs)
        for word, opposite in _OPPOSITES
    )


def _like(word: _Word, other: _Word) -> bool:
    if word.said == other.said:
        return True
    if word.is_name or other.is_name:
        return False
    if word.stem == other.stem:
        # No inflection is a final e, though stemming takes one off: "plan", "plane".
        return f"{word.said}e" != other.said and f"{other.said}e" != word.said
    if not (word.stem.isalpha() and other.stem.isalpha()):
        return False
    # Stemming has taken inflections off: what is longer is another word ("german", "germany").
    if word.stem.startswith(other.stem) or other.stem.startswith(word.stem):
        return False
    return JaroWinkler.similarity(word.stem, other.stem) >= LIKE_FROM


def shared_words(text: str, other: str) -> frozenset[str]:
    """Return the stems of the significant words that two texts have in common."""
    return _stems(text) & _stems(other)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in _telling(text))
