"""Keywords: the words that distinguish one cluster from the agent's other memories."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from arbor.memory.text.lexical import STOP_WORDS, term_index, term_of, words_of
from arbor.memory.text.narratives import NARRATIVE, NARRATIVE_FRAME, split_narrative

#: The most keywords of a cluster, and the number of them in its name.
MAX_KEYWORDS = 8
KEYWORDS_IN_NAME = 3
#: Characters of one memory that are read, and the members that are read, the nearest to the center first.
READ_CHARACTERS = 2_000
READ_MEMBERS = 60
#: The least number of texts that a keyword occurs in; less where the cluster has fewer texts.
_MIN_TEXTS = 2
#: The shortest keyword in Latin letters.
_MIN_WORD_LENGTH = 3
#: The longest name of a cluster, in characters, and the name when there is no keyword.
_NAME_LENGTH = 200
NO_KEYWORDS = "(no words)"
_ID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b")


def terms_in(texts: Sequence[str]) -> frozenset[int]:
    """Return the indices (`lexical.term_index`) whose document frequencies `keywords` needs."""
    return frozenset(term_index(term) for text in texts for term in _forms(text))


def keywords(
    texts: Sequence[str], df: Mapping[int, int], documents: int, *, most: int = MAX_KEYWORDS
) -> tuple[str, ...]:
    """Return the words that distinguish these texts from the agent's other memories, the most distinctive first.

    The class-based TF-IDF of BERTopic (Grootendorst, 2022) with shares of texts instead of counts: the share of these texts
    that have a word, times the logarithm of its ratio to the share of all `documents` (`df` by term). Inflections count as
    one word, shown in the most frequent form. A word that is not more frequent here than elsewhere is no keyword.
    """
    text_counts: Counter[str] = Counter()
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for text in texts:
        for term, words in _forms(text).items():
            text_counts[term] += 1
            forms[term].update(words)
    least = min(_MIN_TEXTS, len(texts))
    weights = {}
    for term, count in text_counts.items():
        if count >= least:
            # The statistics may be a moment behind, so the counts of these texts are their lower bound.
            share, usual = (
                count / len(texts),
                max(df.get(term_index(term), 0), count) / max(documents, len(texts)),
            )
            weights[term] = share * math.log(share / usual)
    best = sorted((term for term in weights if weights[term] > 0), key=lambda term: (-weights[term], term))[
        :most
    ]
    return tuple(min(forms[term], key=lambda word: (-forms[term][word], word)) for term in best)


def default_name(words: Sequence[str]) -> str:
    """Build a cluster's default name from its keywords."""
    return ", ".join(words[:KEYWORDS_IN_NAME])[:_NAME_LENGTH] or NO_KEYWORDS


def _forms(text: str) -> dict[str, Counter[str]]:
    """Return the words of a text by their common term, without stop words, short words, ids, and the paths and fixed phrases of narratives."""
    frame, text = frozenset[str](), text[:READ_CHARACTERS]
    if NARRATIVE.match(text):
        frame, text = NARRATIVE_FRAME, split_narrative(text).matter
    words_by_term: dict[str, Counter[str]] = defaultdict(Counter)
    for word in words_of(_ID.sub(" ", text)):
        short = word.isascii() and len(word) < _MIN_WORD_LENGTH
        if word not in STOP_WORDS and not short and any(map(str.isalpha, word)):
            words_by_term[term_of(word)][word] += 1
    return {term: words for term, words in words_by_term.items() if term not in frame}
