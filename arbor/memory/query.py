"""Parse the text of a query once: words, speaker and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from arbor.memory.lexical import named_speakers, query_terms, query_vector, words_of
from arbor.memory.timespan import TimeSpan, mentioned_span


@dataclass(frozen=True, kw_only=True)
class ReadQuery:
    """A query, understood: everything the scan and the ranker want to know of it."""

    #: The query's side of BM25; its product with a stored vector is from 0 to 1.
    lexical: Mapping[int, float]
    #: The words of the query that name someone whose words are remembered.
    speakers: frozenset[str]
    #: The time that the query speaks of.
    span: TimeSpan | None


def read_query(text: str, *, df: Mapping[int, int], documents: int, now: datetime) -> ReadQuery:
    """Parse a query; `df` are the document frequencies of `lexical.looked_up`, `documents` the number of memories."""
    terms = query_terms(text)
    speakers = named_speakers(terms, df)
    return ReadQuery(
        lexical=query_vector(terms, df, documents),
        speakers=speakers,
        span=mentioned_span(text, now=now),
    )


def meaning_text(text: str, df: Mapping[int, int]) -> str:
    """Return of a query what is to be embedded: the text without the names of speakers, if anything else is in it.

    A name says who is meant, not what: the speaker's term of the score knows that, and a vector of a few words
    is pulled far away by a name (docs/explanation/recall.md: recall@10 of vectors alone is .31 with names, .59 without).
    """
    names = named_speakers(query_terms(text), df)
    pieces = text.split()
    if names:
        pieces = [piece for piece in pieces if names.isdisjoint(words_of(piece))]
    rest = " ".join(pieces)
    return rest if any(words_of(rest)) else text
