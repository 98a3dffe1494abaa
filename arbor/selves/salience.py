"""Choose the parts of a self that a prompt shows, by stability, relevance and recency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, zip_longest

from arbor.memory.text.overlap import overlap, terms_of

#: After this time the recency of a change is halved.
RECENT = timedelta(days=7)
#: The weight of relevance; recency and stability weigh 1 each, so that parts about the present text come first.
RELEVANCE_WEIGHT = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfPart[T]:
    """A part of a self, `row`, with the values that rank it: its text, its stability from 0 to 1, the time of its last change."""

    row: T
    text: str
    changed_at: datetime
    stability: float = 0.0


def choose_salient[T](
    parts: Sequence[SelfPart[T]], *, about: str, now: datetime, limit: int, firmest: int = 0
) -> list[T]:
    """Return at most `limit` parts, in the order in which a prompt keeps them.

    The `firmest` most stable ones are always among them; the others are chosen by relevance to the text `about` and by
    recency, both from 0 to 1, besides their stability. The two groups alternate, so that a prompt cut from its end keeps
    the best of both.
    """
    by_stability = sorted(parts, key=lambda part: -part.stability)
    firm, others = by_stability[:firmest], by_stability[firmest:]
    if len(others) > limit - len(firm):
        terms = terms_of(about)
        others.sort(key=lambda part: -_score(part, terms, now))
    chosen = others[: limit - len(firm)]
    return [part.row for part in chain.from_iterable(zip_longest(firm, chosen)) if part is not None]


def _score[T](part: SelfPart[T], about: frozenset[str], now: datetime) -> float:
    recency: float = 0.5 ** (max(now - part.changed_at, timedelta()) / RECENT)
    return part.stability + recency + RELEVANCE_WEIGHT * overlap(terms_of(part.text), about)
