"""Summarize an episode by rule: its most central sentences, in their original order.

Central is what shares its words with the rest; a word that a chosen sentence has said counts less for the next one
(Nenkova and Vanderwende, "The Impact of Frequency on Summarization", 2005). No model, the same words each time.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from arbor.memory.english import STOP_WORDS
from arbor.memory.lexical import term_of, words_of

#: The longest summary that the rule makes, and that a model is asked for, in characters.
SUMMARY_LENGTH = 600
#: Sentences that are weighed: an episode of more is weighed in parts, evenly taken.
MAX_SENTENCES = 2_000
#: Chosen at most: below the length of a summary, whatever the sentences.
_MAX_CHOSEN = 40
#: What a word that was said already still counts.
_REPEATED = 0.3
#: A sentence of few words is not central for that alone.
_SHORT = 3

_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One memory of an episode: who said it, if anybody, and what."""

    speaker: str = ""
    text: str


@dataclass(frozen=True, kw_only=True)
class _Sentence:
    speaker: str
    text: str
    words: frozenset[str]


def extractive_summary(lines: Sequence[Line], *, longest: int = SUMMARY_LENGTH) -> str:
    """Return the best sentences in order, with their speakers, in at most `longest` characters.

    Short episodes are returned whole. Empty only when the lines have no text.
    """
    sentences = list(_sentences(lines))
    whole = _written(sentences)
    if len(whole) <= longest:
        return whole
    sentences = _evenly(sentences, MAX_SENTENCES)
    chosen: list[int] = []
    for index in _by_centrality(sentences):
        if len(_written([sentences[position] for position in sorted((*chosen, index))])) <= longest:
            chosen.append(index)
    if not chosen:
        # Even the shortest of the best is too long: its beginning must do.
        return _cut(_written(sentences[:1]), longest)
    return _written([sentences[index] for index in sorted(chosen)])


def _sentences(lines: Sequence[Line]) -> Iterator[_Sentence]:
    for line in lines:
        for piece in _ENDS.split(line.text):
            text = " ".join(piece.split())
            if text:
                words = frozenset(term_of(word) for word in words_of(text) if word not in STOP_WORDS)
                yield _Sentence(speaker=" ".join(line.speaker.split()), text=text, words=words)


def _by_centrality(sentences: Sequence[_Sentence]) -> Iterator[int]:
    """Yield places of sentences, the most central first, each weighed with what those before it have said."""
    shares = Counter(word for sentence in sentences for word in sentence.words)
    said: set[str] = set()
    left = set(range(len(sentences)))
    for _ in range(min(_MAX_CHOSEN, len(sentences))):
        best = max(left, key=lambda place: (_weight(sentences[place].words, said, shares), -place))
        left.discard(best)
        said |= sentences[best].words
        yield best


def _weight(words: frozenset[str], said: set[str], shares: Counter[str]) -> float:
    total = sum(shares[word] * (_REPEATED if word in said else 1.0) for word in words)
    return total / math.sqrt(max(len(words), _SHORT))


def _evenly(sentences: list[_Sentence], most: int) -> list[_Sentence]:
    if len(sentences) <= most:
        return sentences
    return [sentences[place * len(sentences) // most] for place in range(most)]


def _written(sentences: Sequence[_Sentence]) -> str:
    """Return sentences as one text; a speaker is named where another one spoke before."""
    parts: list[str] = []
    speaker = ""
    for sentence in sentences:
        named = sentence.speaker and sentence.speaker != speaker
        parts.append(f"{sentence.speaker}: {sentence.text}" if named else sentence.text)
        speaker = sentence.speaker
    return " ".join(parts)


def _cut(text: str, longest: int) -> str:
    """Return the beginning of a text, up to a word's end where there is one."""
    if len(text) <= longest:
        return text
    begin = text[: longest - 1]
    broken = text[longest - 1] != " " and " " in begin
    return f"{begin.rsplit(' ', 1)[0] if broken else begin}…"
