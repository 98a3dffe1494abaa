"""What a recall asks for, read once from the query's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from arbor.memory.lexical import named_speakers, query_terms, query_vector, words_of
from arbor.memory.timespan import TimeSpan, mentioned_span


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A query, understood: everything the scan and the ranker want to know of it."""

    #: What to embed: the text without the names of speakers.
    meaning_text: str
    #: The query's side of BM25; its product with a stored vector is from 0 to 1.
    lexical: Mapping[int, float]
    #: The words of the query that name someone whose words are remembered.
    speakers: frozenset[str]
    #: The time that the query speaks of.
    span: TimeSpan | None


def read_query(text: str, *, df: Mapping[int, int], documents: int, now: datetime) -> Reading:
    """Read a query; `df` holds the document frequencies of `lexical.looked_up`, `documents` their whole."""
    terms = query_terms(text)
    speakers = named_speakers(terms, df)
    return Reading(
        meaning_text=_without(text, speakers),
        lexical=query_vector(terms, df, documents),
        speakers=speakers,
        span=mentioned_span(text, now=now),
    )


def _without(text: str, names: frozenset[str]) -> str:
    """Return the text without these names, or the whole text if nothing else is in it.

    A name says who is meant, not what: the speaker's term of the score knows that, and a vector of a few words
    is pulled far away by a name (docs/explanation/recall.md: recall@10 of vectors alone is .31 with names, .59 without).
    """
    kept = [
        piece for piece in re.split(r"(\s+)", text) if not (names and names.intersection(words_of(piece)))
    ]
    rest = " ".join("".join(kept).split())
    return rest if any(words_of(rest)) else text
