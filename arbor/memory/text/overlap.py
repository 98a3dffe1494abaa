"""The overlap of texts in terms: a measure of likeness that needs no model."""

from __future__ import annotations

from functools import lru_cache

from arbor.memory.text.lexical import STOP_WORDS, term_of, words_of

#: The characters of a text that are compared, so that a long message costs no more.
_COMPARED_CHARACTERS = 2_000
#: The least overlap of two texts about the same matter.
MIN_LIKENESS = 0.4
#: The least number of terms that texts of several terms must share: one shared term is an accident.
_MIN_SHARED = 2


def terms_of(text: str) -> frozenset[str]:
    """Return the terms of the beginning of a text, without stop words."""
    # The cache contains no more of a text than is compared.
    return _terms_of(text[:_COMPARED_CHARACTERS])


# The same texts are compared at each heartbeat.
@lru_cache(maxsize=4_000)
def _terms_of(text: str) -> frozenset[str]:
    return frozenset(term_of(word) for word in words_of(text) if word not in STOP_WORDS)


def overlap(terms: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of the shorter text's terms that the other text has, 0 to 1."""
    return len(terms & others) / min(len(terms), len(others)) if terms and others else 0.0


def likeness(text: str, other: str) -> float:
    """Return the overlap of two texts, 0 to 1; 0 for texts of several terms that share one alone."""
    terms, others = terms_of(text), terms_of(other)
    shared = len(terms & others)
    return overlap(terms, others) if shared >= min(_MIN_SHARED, len(terms), len(others)) else 0.0
