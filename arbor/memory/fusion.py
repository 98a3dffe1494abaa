"""The ranker: why one memory is recalled before another, as a sum of named terms.

Pure: one scan of the agent's memories finds the candidates (nearest by meaning, best by words, and from the
time that the query speaks of), one fetch brings those rows and the turns beside them, and this ranks them.
docs/recall.md says how the weights were found and what each term is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.memory.decay import days_between, relevance
from arbor.memory.lexical import speaker_words
from arbor.memory.query import Reading
from arbor.memory.values import ScoreTerms

type Scores = npt.NDArray[np.float64]

#: Taken from the scan: so many of the nearest by meaning, and so many of the best by words.
SEEDS = 50
#: And so many of the best fit from the time that the query speaks of.
SPAN_SEEDS = 25
#: How far from each of those the turns beside it are fetched.
REACH = 2
#: The best of ten thousand memories is some six deviations nearer than the average one: 1 on meaning's scale.
_DEVIATIONS = 6.0


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What each term is worth. Found by hand on five dialogs of LoCoMo, each a flat optimum (docs/recall.md)."""

    words: float = 1.0
    meaning: float = 0.3
    #: Share of their fit that the turns just before and after lend; those one further away, half as much.
    neighbours: float = 0.25
    #: Added where the turn before asks something: this one is probably its answer.
    answer: float = 0.25
    #: Share of the fit of the best memory in the same session.
    session: float = 0.5
    speaker: float = 0.25
    time: float = 0.25
    recency: float = 0.05
    importance: float = 0.05
    trust: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """The cosines of the query with all of the agent's memories: what "near" means depends on the embedder."""

    mean: float
    deviation: float


class Candidate(NamedTuple):
    """A memory that may be recalled, or stands beside one. Made by the hundred for each recall, hence a tuple."""

    id: UUID
    #: Inner product of `Reading.lexical` with the stored vector, 0 to 1.
    words: float
    #: Cosine with the query's embedding; None while the memory is not embedded.
    similarity: float | None
    #: Empty: it belongs to no session and has no neighbours.
    session: str
    position: int
    role: str
    #: Its text holds a question mark.
    asks: bool
    occurred_at: datetime
    last_access_at: datetime | None
    importance: float
    decay_rate: float
    trust: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A candidate's place in the ranking, with its receipt."""

    id: UUID
    score: float
    terms: ScoreTerms


DEFAULT_WEIGHTS = Weights()


def rank(
    candidates: Sequence[Candidate],
    *,
    reading: Reading,
    background: Background,
    now: datetime,
    limit: int,
    weights: Weights = DEFAULT_WEIGHTS,
) -> list[Ranked]:
    """Return the `limit` best candidates, the best first; equal scores in the order of their ids."""
    if not candidates or limit < 1:
        return []
    words = weights.words * np.array([c.words for c in candidates])
    meaning = weights.meaning * _meaning(candidates, background)
    fit = words + meaning
    terms = {
        "meaning": meaning,
        "words": words,
        "neighbours": _neighbours(candidates, fit, weights),
        "session": weights.session * _session(candidates, fit),
        "speaker": weights.speaker * _speaker(candidates, reading.speakers),
        "time": weights.time * _time(candidates, reading),
        "recency": weights.recency * _recency(candidates, now),
        "importance": weights.importance * np.array([c.importance for c in candidates]),
        "trust": weights.trust * np.array([c.trust for c in candidates]),
    }
    totals = np.sum(list(terms.values()), axis=0)
    best = sorted(range(len(candidates)), key=lambda i: (-totals[i], candidates[i].id))[:limit]
    return [
        Ranked(
            id=candidates[i].id,
            score=float(totals[i]),
            terms=ScoreTerms(**{name: float(values[i]) for name, values in terms.items()}),
        )
        for i in best
    ]


def _meaning(candidates: Sequence[Candidate], background: Background) -> Scores:
    """Return how many deviations nearer than the average each one is, on a scale of 0 to 1."""
    if not background.deviation > 1e-6:
        return np.zeros(len(candidates))
    mean = background.mean
    similarity = np.array([mean if c.similarity is None else c.similarity for c in candidates])
    return np.clip((similarity - mean) / background.deviation / _DEVIATIONS, 0.0, 1.0)


def _neighbours(candidates: Sequence[Candidate], fit: Scores, weights: Weights) -> Scores:
    """Return the shares of their fit that the turns within REACH in the same session lend each other."""
    places = {(c.session, c.position): i for i, c in enumerate(candidates) if c.session}
    fits = fit.tolist()
    lent = np.zeros(len(candidates))
    for (session, position), i in places.items():
        for step in range(1, REACH + 1):
            before = places.get((session, position - step))
            if before is not None:
                answer = weights.answer if step == 1 and candidates[before].asks else 0.0
                lent[i] += (weights.neighbours / step + answer) * fits[before]
            after = places.get((session, position + step))
            if after is not None:
                lent[i] += weights.neighbours / step * fits[after]
    return lent


def _session(candidates: Sequence[Candidate], fit: Scores) -> Scores:
    """Return the fit of the best candidate in the same session; a memory without one is a session of its own."""
    fits = fit.tolist()
    best: dict[str, float] = {}
    for candidate, value in zip(candidates, fits, strict=True):
        if value > best.get(candidate.session, 0.0):
            best[candidate.session] = value
    return np.array(
        [best.get(c.session, 0.0) if c.session else f for c, f in zip(candidates, fits, strict=True)]
    )


def _speaker(candidates: Sequence[Candidate], named: frozenset[str]) -> Scores:
    """Return 1 where the query names the one who said it."""
    if not named:
        return np.zeros(len(candidates))
    matches = {
        role: float(not named.isdisjoint(speaker_words(role))) for role in {c.role for c in candidates}
    }
    return np.array([matches[c.role] for c in candidates])


def _time(candidates: Sequence[Candidate], reading: Reading) -> Scores:
    """Return how near each one is to the time that the query speaks of, 0 to 1."""
    if reading.span is None:
        return np.zeros(len(candidates))
    return np.array([reading.span.nearness(c.occurred_at) for c in candidates])


def _recency(candidates: Sequence[Candidate], now: datetime) -> Scores:
    """Return what is left of each one's importance since it was last recalled, or else since it happened."""
    return np.array(
        [
            relevance(
                importance=c.importance,
                decay_rate=c.decay_rate,
                days_since_access=days_between(c.last_access_at or c.occurred_at, now),
            )
            for c in candidates
        ]
    )
