"""Lexical vectors: texts become sparse vectors whose inner product is BM25.

The document's side (saturated term frequency, length) is stored; the query's side (how rare a term is among
this agent's memories) is computed when asked, so storing a memory never touches another one. Robertson and
Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import snowballstemmer

from arbor.memory.english import BASE_FORMS, STOP_WORDS

#: The most that pgvector's sparsevec can address; terms are hashed to 1 up to this.
LEXICAL_DIMENSIONS = 1_000_000_000
#: Terms stored of one text: a B-tree tuple of the covering index has 2,704 bytes, 8 for each term.
MAX_TERMS = 200
#: How fast a repeated word stops counting (the middle of the usual 0.9 to 2).
SATURATION = 1.2
#: The penalty of long texts, 0 to 1. Below the usual 0.75: turns of talk are short, and the
#: longer ones say more. docs/explanation/recall.md has the curve; it is flat from 0.2 to 0.6.
LENGTH_NORM = 0.4
#: A text of usual length, in terms that count. Fixed, so that a stored vector never has to be made again.
USUAL_LENGTH = 12.0

#: Longer words are cut: they are no words, and would fill the caches.
_LONGEST_WORD = 40
_WORDS = re.compile(
    r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?"  # 12,000.50
    r"|\d+(?:\.\d+)+"  # 3.5, 1.2.3
    r"|[^\W_]+(?:'[^\W_]+)*"  # don't, o'clock, café, gpt4
)
_APOSTROPHES = "’‘ʼ＇"
#: Scripts that write words without spaces: Thai, Lao, Khmer, kana, Han.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
#: The most that a term weighs in a stored vector, and what "said by" weighs there.
_MOST = SATURATION + 1
_SPOKEN = 1.0
_NAME_WORDS = 8
#: Roles that nobody is called by: "which system" does not mean them.
_MACHINES = frozenset({"environment", "system", "tool", "tool_result", "function"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerm:
    """One word of a query, with the places of its statistics and of its weight."""

    word: str
    #: 0 for a stop word: it is looked at as a speaker's name only ("Will").
    index: int
    speaker_index: int


def words_of(text: str) -> Iterator[str]:
    """Yield the text's words: case folded, without possessives, stop words included."""
    for word in _WORDS.findall(fold(text)):
        yield from _parts_of(word)


def fold(text: str) -> str:
    """Return the text as it is compared: compatible characters, plain apostrophes, no capitals."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text)
    # Some characters are replaced ten times as fast as all are translated.
    for apostrophe in _APOSTROPHES:
        text = text.replace(apostrophe, "'")
    return text.casefold()


def _parts_of(word: str) -> Iterable[str]:
    """Return what a word of a folded text is compared as: itself, or pairs of characters where words are not spaced."""
    if word.isascii():
        return (word.replace(",", "").removesuffix("'s")[:_LONGEST_WORD],)
    return _split_unspaced(word.removesuffix("'s"))


def _split_unspaced(word: str) -> Iterator[str]:
    """Yield the word, runs of unspaced scripts cut into pairs of characters that overlap."""
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            yield word[end : run.start()][:_LONGEST_WORD]
        found = run.group()
        yield from (found[i : i + 2] for i in range(max(1, len(found) - 1)))
        end = run.end()
    if end < len(word):
        yield word[end:][:_LONGEST_WORD]


_stemmers = threading.local()


@lru_cache(maxsize=50_000)
def term_of(word: str) -> str:
    """Return the term of a word and its inflections: "bought", "buying" and "buys" are all "buy"."""
    word = BASE_FORMS.get(word, word)
    if not word.isascii():
        return word
    # The stemmer keeps its state in itself: one for each thread. Pure Python, hence the cache.
    if not hasattr(_stemmers, "english"):
        _stemmers.english = snowballstemmer.stemmer("english")
    return str(_stemmers.english.stemWord(word))


@lru_cache(maxsize=100_000)
def term_index(term: str) -> int:
    """Return the term's place in the vector, 1 to LEXICAL_DIMENSIONS, the same in every process and release."""
    digest = hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % LEXICAL_DIMENSIONS + 1


def speaker_index(word: str) -> int:
    """Return the place for "said by someone of this name", apart from the name's own place as a word."""
    return term_index(f"speaker:{word}")


def document_vector(text: str, *, speaker: str = "") -> dict[int, float]:
    """Return the stored side: the weight of each term, at most MAX_TERMS of them, each from 0 to 2.2.

    The heaviest terms stay; of equally heavy ones those that come first. `speaker` is a role or a name.
    """
    counts = Counter(_places_in(text))
    length = 1 - LENGTH_NORM + LENGTH_NORM * counts.total() / USUAL_LENGTH
    vector = {speaker_index(word): _SPOKEN for word in speaker_words(speaker)}
    saturated = SATURATION * length
    for place, count in counts.most_common(MAX_TERMS - len(vector)):
        vector[place] = count * _MOST / (count + saturated)
    return vector


def _places_in(text: str) -> Iterator[int]:
    """Return the places of a text's terms, in order, as often as they occur."""
    words = _WORDS.findall(fold(text))
    # Words that are none would fill the cache.
    short = max(map(len, words), default=0) <= 2 * _LONGEST_WORD
    return chain.from_iterable(map(_places_of if short else _places_of.__wrapped__, words))


@lru_cache(maxsize=100_000)
def _places_of(word: str) -> tuple[int, ...]:
    """Return the places of the terms of a word of a folded text; none for a stop word."""
    return tuple(term_index(term_of(part)) for part in _parts_of(word) if part not in STOP_WORDS)


def speaker_words(speaker: str) -> frozenset[str]:
    """Return the words that name a speaker in a query; a machine's role has none."""
    if speaker.casefold() in _MACHINES:
        return frozenset()
    words = list(words_of(speaker))[:_NAME_WORDS]
    return frozenset(word for word in words if word not in STOP_WORDS) or frozenset(words)


# A heartbeat reads its focus three times: to look words up, to embed it, to recall.
@lru_cache(maxsize=256)
def query_terms(text: str) -> tuple[QueryTerm, ...]:
    """Return the query's terms, each once, in order; the first MAX_TERMS of a long text."""
    found: dict[str, QueryTerm] = {}
    capitals = {word.casefold().removesuffix("'s") for word in re.findall(r"\b[A-Z]['\w]*", text)}
    for word in words_of(text):
        stop = word in STOP_WORDS
        if word in found or (stop and word not in capitals):
            continue
        index = 0 if stop else term_index(term_of(word))
        found[word] = QueryTerm(word=word, index=index, speaker_index=speaker_index(word))
        if len(found) == MAX_TERMS:
            break
    return tuple(found.values())


def looked_up(terms: tuple[QueryTerm, ...]) -> frozenset[int]:
    """Return the places whose document frequencies `query_vector` and `named_speakers` want to know."""
    return frozenset({term.index for term in terms} | {term.speaker_index for term in terms}) - {0}


def named_speakers(terms: tuple[QueryTerm, ...], df: Mapping[int, int]) -> frozenset[str]:
    """Return the words of the query that are the name of someone whose words are remembered."""
    return frozenset(term.word for term in terms if df.get(term.speaker_index, 0) > 0)


def query_vector(terms: tuple[QueryTerm, ...], df: Mapping[int, int], documents: int) -> dict[int, float]:
    """Return the query's side, such that its inner product with a stored vector is from 0 to 1.

    `df` is in how many of the agent's `documents` memories a term occurs. The product is the share of the
    query's weight that the memory answers, BM25 divided by the most it could be. A speaker's name counts as
    the name or the speaking, and is as rare as both together: naming one of two speakers says little.
    """
    vector: dict[int, float] = {}
    most = 0.0
    used: set[int] = set()
    for term in terms:
        spoken = df.get(term.speaker_index, 0)
        place = term.index or term.speaker_index
        if place in used or (term.index == 0 and not spoken):
            continue
        used.add(place)
        idf = _idf(df.get(term.index, 0) + spoken, documents)
        most += idf * _MOST
        if df.get(term.index, 0):
            vector[term.index] = idf
        if spoken:
            most += idf * _SPOKEN
            vector[term.speaker_index] = idf
    return {index: weight / most for index, weight in vector.items()}


def _idf(found: int, documents: int) -> float:
    """Return the inverse document frequency: nearly 0 when every memory has the term, ln(2·documents) when one has."""
    documents = max(0, documents)
    found = min(max(0, found), documents)
    return math.log(1 + (documents - found + 0.5) / (found + 0.5))
