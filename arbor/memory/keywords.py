"""Keywords: the words that distinguish one cluster from all else that an agent remembers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from arbor.memory.english import STOP_WORDS
from arbor.memory.lexical import term_index, term_of, words_of

#: Words that name a cluster, and those of them in its name.
KEYWORDS = 8
IN_NAME = 3
#: Characters of one memory that are read, and members whose words are, the nearest to the centre: enough to see what
#: they have in common.
READ_CHARACTERS = 2_000
READ_MEMBERS = 60
#: Texts that must have a word before it can represent all, where there are that many.
_LEAST_TEXTS = 2
#: Shorter words of Latin letters say little.
_SHORTEST = 3
#: The longest name of a cluster, in characters, and the name when there is no keyword.
_NAME_LENGTH = 200
_NAMELESS = "(no words)"


def terms_in(texts: Sequence[str]) -> frozenset[int]:
    """Return the places (`lexical.term_index`) whose document frequencies `keywords` wants to know."""
    return frozenset(term_index(term) for text in texts for term in _forms(text))


def keywords(
    texts: Sequence[str], df: Mapping[int, int], documents: int, *, most: int = KEYWORDS
) -> tuple[str, ...]:
    """Return the words that distinguish these texts from the agent's other memories, the most distinctive first.

    The class-based TF-IDF of BERTopic (Grootendorst, 2022) with the shares of texts in place of counts: the share of these
    that have a word, times the logarithm of how much greater it is than the share of all `documents`, `df` by term. A
    word's forms count as one, and are shown as the one that is used most. A word that is used no more here than
    elsewhere is none.
    """
    having: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for term, words in _forms(text).items():
            having[term] += 1
            forms[term].update(words)
    least = min(_LEAST_TEXTS, len(texts))
    weights = {}
    for term, count in having.items():
        if count >= least:
            # What the statistics count is never less than what is seen here: they may be a moment behind.
            share, usual = (
                count / len(texts),
                max(df.get(term_index(term), 0), count) / max(documents, len(texts)),
            )
            weights[term] = share * math.log(share / usual)
    best = sorted((term for term in weights if weights[term] > 0), key=lambda term: (-weights[term], term))[
        :most
    ]
    return tuple(min(forms[term], key=lambda word: (-forms[term][word], word)) for term in best)


def name_of(words: Sequence[str]) -> str:
    """Return the name that a cluster has from its keywords while nobody has named it."""
    return ", ".join(words[:IN_NAME])[:_NAME_LENGTH] or _NAMELESS


def _forms(text: str) -> dict[str, Counter[str]]:
    """Return the words of a text by their common term, without those that say nothing."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for word in words_of(text[:READ_CHARACTERS]):
        short = word.isascii() and len(word) < _SHORTEST
        if word not in STOP_WORDS and not short and any(map(str.isalpha, word)):
            found[term_of(word)][word] += 1
    return found
