"""Compare titles of goals, to detect two titles that name one goal in different words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import JaroWinkler

from arbor.memory.text.lexical import STOP_WORDS, term_of, words_of

# Proposals are compared as whole texts, from 0.85 (seed 000, 2). Titles are too short for that: "Chart the north reef"
# and "Chart the south reef" reach 0.94, "Goal 1" and "Goal 2" 0.93. So titles are compared word by word, without
# inflections, and each pair of words must reach this: a variant spelling does ("harbour", "harbor": 0.97), another word
# does not ("Jon", "John": 0.93).
LIKE_FROM = 0.95

#: Words that negate a title, besides the words that end in n't.
_NEGATIONS = frozenset({"not", "no", "never", "none", "nor", "neither", "cannot", "nothing", "nobody"})
#: Pairs of words, most of them stop words, that distinguish two goals: one title has the first word, the other the second.
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
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class _Word(NamedTuple):
    """A significant word: as written, its stem, and whether it is written like a name."""

    written: str
    stem: str
    is_name: bool


def same_goal(title: str, other: str) -> bool:
    """Return whether two titles name one goal: each significant word of one has a match in the other.

    Numbers, names and the number of negations must be equal.
    """
    own_words, other_words = _significant_words(title), list(_significant_words(other))
    if not own_words or len(own_words) != len(other_words) or _are_opposed(title, other):
        return False
    for word in own_words:
        like = next((candidate for candidate in other_words if _is_like_word(word, candidate)), None)
        if like is None:
            return False
        other_words.remove(like)
    return True


@lru_cache(maxsize=10_000)
def _significant_words(title: str) -> tuple[_Word, ...]:
    # A capital at the beginning does not make a name.
    names = {word.casefold() for word in _WORD.findall(title)[1:] if word[0].isupper()}
    words = [_Word(word, term_of(word), word in names) for word in dict.fromkeys(words_of(title))]
    return tuple(word for word in words if word.written not in STOP_WORDS) or tuple(words)


@lru_cache(maxsize=10_000)
def _negations_and_words(title: str) -> tuple[int, frozenset[str]]:
    """Return the number of negations in a title, and its words."""
    words = list(words_of(title))
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words), frozenset(words)


def _are_opposed(title: str, other: str) -> bool:
    (denied, own_words), (denied_there, other_words) = (
        _negations_and_words(title),
        _negations_and_words(other),
    )
    if denied != denied_there:
        return True
    only_mine, only_theirs = own_words - other_words, other_words - own_words
    return any(
        (word in only_mine and opposite in only_theirs) or (opposite in only_mine and word in only_theirs)
        for word, opposite in _OPPOSITES
    )


def _is_like_word(word: _Word, other: _Word) -> bool:
    if word.written == other.written:
        return True
    if word.is_name or other.is_name:
        return False
    if word.stem == other.stem:
        # No inflection is a final e, though stemming takes one off: "plan", "plane".
        return f"{word.written}e" != other.written and f"{other.written}e" != word.written
    if not (word.stem.isalpha() and other.stem.isalpha()):
        return False
    # Stems have no inflections, so a longer stem is another word ("german", "germany").
    if word.stem.startswith(other.stem) or other.stem.startswith(word.stem):
        return False
    return JaroWinkler.similarity(word.stem, other.stem) >= LIKE_FROM


def shared_words(text: str, other: str) -> frozenset[str]:
    """Return the stems of the significant words that two texts have in common."""
    return _stems(text) & _stems(other)


def _stems(text: str) -> frozenset[str]:
    return frozenset(word.stem for word in _significant_words(text))
