"""Parse the text of a query once: words, speaker and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from arbor.memory.recall.timespan import TimeSpan, mentioned_span
from arbor.memory.text.lexical import named_speakers, query_terms, query_vector, words_of


@dataclass(frozen=True, kw_only=True)
class ReadQuery:
    """A parsed query: the inputs of the scan and the ranker."""

    #: The query's vector for BM25; its product with a stored vector is from 0 to 1.
    lexical: Mapping[int, float]
    #: The words of the query that name speakers of the agent's memories.
    speakers: frozenset[str]
    #: The time that the query mentions.
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
    """Return the part of a query to embed: the text without the names of speakers, if other words are left.

    The score has a component for speakers, and a name distorts the vector of a few words (docs/explanation/recall.md:
    recall@10 of vectors alone is .31 with names, .59 without).
    """
    names = named_speakers(query_terms(text), df)
    words = text.split()
    if names:
        words = [word for word in words if names.isdisjoint(words_of(word))]
    remaining = " ".join(words)
    return remaining if any(words_of(remaining)) else text
