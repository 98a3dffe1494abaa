"""Summarize an episode by rule: its most central sentences, in their original order.

A sentence is central when it shares many words with the others; a word of a chosen sentence counts less for the next one
(Nenkova and Vanderwende, "The Impact of Frequency on Summarization", 2005). Deterministic, without a model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from arbor.memory.text.lexical import STOP_WORDS, term_of, words_of
from arbor.quotations import shorten

#: The longest summary that the rule builds and that a prompt asks a model for, in characters.
SUMMARY_LENGTH = 600
#: The most sentences that are considered; a longer episode is sampled evenly.
MAX_SENTENCES = 2_000
#: The most sentences of a summary.
_MAX_CHOSEN = 40
#: The share of its weight that a word has left once a chosen sentence contains it.
_REPEATED_SHARE = 0.3
#: The least divisor of a sentence's weight, so that a sentence of few words is not central for its brevity.
_MIN_WORDS = 3

#: The end of a sentence, with its closing marks and the white space after them.
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, kw_only=True)
class SpokenText:
    """A text to summarize, with its speaker, if any: a memory of an episode, a turn, an output."""

    speaker: str = ""
    text: str


@dataclass(frozen=True, kw_only=True)
class _Sentence:
    speaker: str
    text: str
    words: frozenset[str]


def extractive_summary(texts: Sequence[SpokenText], *, longest: int = SUMMARY_LENGTH) -> str:
    """Return the best sentences in order, with their speakers, in at most `longest` characters.

    Short episodes are returned whole. Empty only when there is no text.
    """
    sentences = list(_sentences(texts))
    full_text = _join_sentences(sentences)
    if len(full_text) <= longest:
        return full_text
    sentences = _sample_evenly(sentences, MAX_SENTENCES)
    chosen: list[int] = []
    for index in _by_centrality(sentences):
        if len(_join_sentences([sentences[position] for position in sorted((*chosen, index))])) <= longest:
            chosen.append(index)
    if not chosen:
        # None of the most central sentences fits, so the beginning of the first sentence is the summary.
        return shorten(_join_sentences(sentences[:1]), longest)
    return _join_sentences([sentences[index] for index in sorted(chosen)])


def _sentences(texts: Sequence[SpokenText]) -> Iterator[_Sentence]:
    for spoken in texts:
        ends = [match.end() for match in _ENDS.finditer(spoken.text)]
        for start, end in pairwise([0, *ends, len(spoken.text)]):
            text = " ".join(spoken.text[start:end].split())
            if text:
                words = frozenset(term_of(word) for word in words_of(text) if word not in STOP_WORDS)
                yield _Sentence(speaker=" ".join(spoken.speaker.split()), text=text, words=words)


def _by_centrality(sentences: Sequence[_Sentence]) -> Iterator[int]:
    """Yield indices of sentences, the most central first; words of the yielded ones count less for the next."""
    shares = Counter(word for sentence in sentences for word in sentence.words)
    used_words: set[str] = set()
    left = set(range(len(sentences)))
    for _ in range(min(_MAX_CHOSEN, len(sentences))):
        best = max(
            left, key=lambda position: (_weight(sentences[position].words, used_words, shares), -position)
        )
        left.discard(best)
        used_words |= sentences[best].words
        yield best


def _weight(words: frozenset[str], used_words: set[str], shares: Counter[str]) -> float:
    total = sum(shares[word] * (_REPEATED_SHARE if word in used_words else 1.0) for word in words)
    return total / math.sqrt(max(len(words), _MIN_WORDS))


def _sample_evenly(sentences: list[_Sentence], most: int) -> list[_Sentence]:
    if len(sentences) <= most:
        return sentences
    return [sentences[position * len(sentences) // most] for position in range(most)]


def _join_sentences(sentences: Sequence[_Sentence]) -> str:
    """Return sentences as one text; a speaker is named where another one spoke before."""
    parts: list[str] = []
    speaker = ""
    for sentence in sentences:
        names_speaker = sentence.speaker and sentence.speaker != speaker
        parts.append(f"{sentence.speaker}: {sentence.text}" if names_speaker else sentence.text)
        speaker = sentence.speaker
    return " ".join(parts)
