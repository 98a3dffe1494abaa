"""The plan of an inquiry: its queries, its number of pages, the request of its look-up (seed 004, 3.2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest

from arbor.memory.text.lexical import STOP_WORDS, words_of
from arbor.models.ports import CallPurpose, ModelRequest
from arbor.web.ports import SearchResult

#: The further queries for a question, when the model gave too few.
_ANGLES = ("{words}", "{words} evidence", "{words} criticism")
#: The handle of a look-up in calls and in the ledger, instead of a model's.
WEB_HANDLE = "web/searxng"


class Depth(StrEnum):
    """The depth of an inquiry."""

    #: One or two searches, up to three pages.
    SHALLOW = "shallow"
    #: Three to five searches, up to ten pages, and recalled memories.
    DEEP = "deep"


@dataclass(frozen=True, kw_only=True, slots=True)
class InquiryPlan:
    """An inquiry's queries and limits; `results` is the number of results of each search."""

    depth: Depth
    queries: tuple[str, ...]
    results: int
    pages: int


# Least and most queries, and most pages (seed 004, 3.2.4).
_LIMITS = {Depth.SHALLOW: (1, 2, 3), Depth.DEEP: (3, 5, 10)}


def plan_inquiry(question: str, queries: Sequence[str], depth: Depth) -> InquiryPlan:
    """Plan an inquiry by the model's distinct queries; add queries built from the question where there are too few."""
    fewest, most, pages = _LIMITS[depth]
    chosen: dict[str, str] = {}
    for query in queries:
        if text := " ".join(query.split()):
            chosen.setdefault(text.casefold(), text)
    words = " ".join(word for word in words_of(question) if word not in STOP_WORDS) or question
    for query in (question, *(angle.format(words=words) for angle in _ANGLES)):
        if len(chosen) < fewest:
            chosen.setdefault(query.casefold(), query)
    return InquiryPlan(depth=depth, queries=tuple(chosen.values())[:most], results=pages, pages=pages)


def choose_pages(found: Sequence[Sequence[SearchResult]], most: int) -> list[SearchResult]:
    """Choose distinct results in turn: the best of each search, then the second of each, and so on."""
    ranked = [result for rank in zip_longest(*found) for result in rank if result is not None]
    first: dict[str, SearchResult] = {}
    for result in ranked:
        first.setdefault(result.url.partition("#")[0], result)
    return list(first.values())[:most]


def web_request(*, question: str, queries: Sequence[str], depth: Depth) -> ModelRequest:
    """Build the request of a look-up."""
    return ModelRequest(
        purpose=CallPurpose.WEB,
        system="",
        messages=(),
        context={"question": question, "queries": list(queries), "depth": depth.value},
    )
