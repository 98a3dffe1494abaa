"""The ranker: score candidates by a sum of named score components.

Pure functions. A scan of the agent's memories selects the candidates (nearest by meaning, best by words, and from the time
that the query mentions), a fetch loads them with the turns beside them, and this module ranks them.
docs/explanation/recall.md explains the weights and the contribution of each score component.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from arbor.memory.forgetting import BOOST
from arbor.memory.recall.candidates import (
    NO_LINKS,
    SESSION_ROOM,
    Candidates,
    Flags,
    Links,
    Numbers,
    Places,
    ids_of_halves,
    microseconds,
)
from arbor.memory.recall.recall_request import ReadQuery
from arbor.memory.recall.timespan import NEARNESS_DAYS, YEAR_DAYS, TimeSpan
from arbor.memory.recall.weights import DEFAULT_WEIGHTS, Weights
from arbor.memory.text.lexical import speaker_words
from arbor.memory.values import COMPONENT_NAMES, ScoreComponents

#: The numbers of seeds from the scan: the nearest by meaning, and the best by words.
SEEDS = 50
#: The number of seeds that fit best from the time that the query names.
SPAN_SEEDS = 25
#: The distance from a seed within which the turns beside it are fetched.
REACH = 2
#: The most turns fetched for one seed; it has more than 2 · REACH beside it only where several memories share a position.
MAX_BESIDE = 20
#: The weight of meaning among the candidates from the time that the query mentions: words decide, meaning breaks ties.
MEANING_BESIDE_WORDS = 0.05
#: The number of best seeds whose neighborhoods contribute, and the number of memories added by that.
MAX_ASSOCIATION_SOURCES = 20
MAX_ASSOCIATED_MEMORIES = 20
#: The deviations above the mean that count as 1 in meaning: the best of ten thousand memories has about six.
DEVIATIONS = 6.0
#: Below this deviation, cosines differ by rounding only, and meaning counts for nothing.
MIN_DEVIATION = 1e-6
#: More than the error of a sum of thirteen components.
_ROUNDING = 1e-9
_DAY = 86_400 * 1_000_000
#: The offsets of the turns beside a turn, as a column: 1, -1, 2, -2 for a REACH of 2.
_OFFSETS = np.array([[sign * step] for step in range(1, REACH + 1) for sign in (1, -1)])
_OFFSET_ROWS = np.arange(len(_OFFSETS))[:, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """Mean and deviation of the query's cosines with all of the agent's memories, which depend on the embedder."""

    mean: float
    deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidate:
    """A ranked candidate with its score components."""

    #: The index among the candidates.
    index: int
    id: UUID
    score: float
    components: ScoreComponents


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedCandidates:
    """Candidates of which only the best are selected: a flag for each candidate, and the most of those with the flag."""

    flags: Flags
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreInputs:
    """The candidates of one recall, and all inputs of their scores except the time."""

    candidates: Candidates
    reading: ReadQuery
    background: Background
    weights: Weights = DEFAULT_WEIGHTS
    #: The neighborhoods of the best-fitting candidates.
    links: Links = NO_LINKS
    #: The valence of the agent's mood, -1 to 1, if known.
    mood: float | None = None


def rank(inputs: ScoreInputs, *, now: datetime, limit: int) -> list[RankedCandidate]:
    """Return the `limit` best candidates, the best first; equal scores in the order of their ids."""
    components = all_components(
        lasting_components(inputs), inputs.candidates, now=now, weights=inputs.weights
    )
    return select_best(inputs.candidates, components, limit)


def select_best(
    candidates: Candidates,
    components: Mapping[str, Numbers],
    limit: int,
    limited: LimitedCandidates | None = None,
) -> list[RankedCandidate]:
    """Return the `limit` candidates with the highest sum of score components, as `rank` does; of limited ones the best."""
    if not len(candidates) or limit < 1:
        return []
    columns = np.array(list(components.values()))
    totals = columns.sum(axis=0)
    best = np.arange(len(totals))
    if limited is not None:
        flagged = limited.flags.nonzero()[0]
        best = np.concatenate(
            [(~limited.flags).nonzero()[0], _highest(candidates, totals, flagged, limited.most)]
        )
    best = _highest(candidates, totals, best, limit)
    values_of_best = columns[:, best].T.tolist()
    return [
        RankedCandidate(
            index=index,
            id=memory_id,
            score=total,
            components=ScoreComponents(**dict(zip(components, values, strict=True))),
        )
        for index, memory_id, total, values in zip(
            best.tolist(),
            ids_of_halves(candidates.ids[best]),
            totals[best].tolist(),
            values_of_best,
            strict=True,
        )
    ]


def _highest(candidates: Candidates, totals: Numbers, places: Places, count: int) -> Places:
    """Return the `count` places with the highest totals, the highest first; equal totals in the order of their ids."""
    if count < len(places):
        values = totals[places]
        places = places[values >= np.partition(values, -count)[-count]]
    order = np.lexsort((candidates.ids[places, 1], candidates.ids[places, 0], -totals[places]))
    return places[order[:count]]


def all_components(
    lasting: Mapping[str, Numbers], candidates: Candidates, *, now: datetime, weights: Weights
) -> dict[str, Numbers]:
    """Return all score components of the candidates as columns by name; `lasting` are those that use does not change."""
    importance = _effective_importance(candidates)
    used = {
        "recency": weights.recency * importance * _retained(candidates, now),
        "importance": weights.importance * importance,
        "activation": weights.activation * candidates.level,
    }
    components = {**lasting, **used}
    return {name: components[name] for name in COMPONENT_NAMES}


def contenders(
    candidates: Candidates,
    lasting: Mapping[str, Numbers],
    *,
    weights: Weights,
    limit: int,
    limited: LimitedCandidates | None = None,
) -> Places:
    """Return the positions of the candidates that can be among the `limit` best, however often they were used.

    Use changes three components, all bounded: importance is at least as stored, recency and activation are at least 0, and none
    of the three exceeds its weight.
    """
    if len(candidates) <= limit:
        return np.arange(len(candidates))
    steady = np.array(list(lasting.values())).sum(axis=0)
    least = steady + weights.importance * candidates.importance
    most = steady + (weights.importance + weights.recency + weights.activation)
    able = np.zeros(len(candidates), dtype=np.bool_)
    groups = [(np.arange(len(candidates)), limit)]
    if limited is not None:
        groups = [
            ((~limited.flags).nonzero()[0], limit),
            (limited.flags.nonzero()[0], min(limit, limited.most)),
        ]
    for places, count in groups:
        edge = np.partition(least[places], -count)[-count] if count < len(places) else -np.inf
        # Sums in another order differ in their last bits.
        able[places] = most[places] >= edge - _ROUNDING
    return able.nonzero()[0]


def lasting_components(inputs: ScoreInputs) -> dict[str, Numbers]:
    """Return the score components that do not depend on the use of a memory, as columns by name."""
    candidates, weights = inputs.candidates, inputs.weights
    words = weights.words * candidates.words
    meaning = weights.meaning * deviations(candidates.similarity, inputs.background)
    fit = words + meaning
    return {
        "meaning": meaning,
        "words": words,
        "neighbours": _neighbours(candidates, fit, weights),
        "association": weights.association * _association(inputs.links, fit),
        "session": weights.session * _best_of(candidates.session, fit),
        "episode": weights.episode * _best_of(candidates.episode, fit),
        "speaker": weights.speaker * _speaker(candidates, inputs.reading.speakers),
        "time": weights.time * _nearness(inputs.reading.span, candidates.occurred),
        "trust": weights.trust * candidates.trust,
        "mood": weights.mood * _congruence(candidates.valence, inputs.mood),
    }


def deviations(similarity: Numbers, background: Background) -> Numbers:
    """Return the deviations of each cosine above the mean, scaled to 0 to 1; 0 for NaN."""
    if not background.deviation > MIN_DEVIATION:
        return np.zeros(len(similarity))
    nearer = (similarity - background.mean) / background.deviation / DEVIATIONS
    # Of a number and NaN, `fmax` returns the number.
    nearness: Numbers = np.minimum(np.fmax(nearer, 0.0), 1.0)
    return nearness


def _neighbours(candidates: Candidates, fit: Numbers, weights: Weights) -> Numbers:
    """Return the shares of fit that turns within REACH in the same session give each other.

    Of several memories at one position, the best fit counts.
    """
    shares = np.zeros(len(candidates))
    within = np.flatnonzero(candidates.session >= 0)
    if not len(within):
        return shares
    positions = candidates.session[within] * SESSION_ROOM + candidates.position[within]
    order = np.lexsort((candidates.ids[within, 1], -fit[within], positions))
    places = positions[order]
    first = np.ones(len(places), dtype=np.bool_)
    first[1:] = places[1:] != places[:-1]
    places, best_rows = places[first], within[order[first]]
    # One row for each offset; a position without a memory contributes nothing.
    beside = positions + _OFFSETS
    at = np.minimum(places.searchsorted(beside), len(places) - 1)
    share = weights.neighbours / abs(_OFFSETS) + (_OFFSETS == -1) * (
        weights.answer * candidates.asks[best_rows]
    )
    contributions = np.where(places[at] == beside, (share * fit[best_rows])[_OFFSET_ROWS, at], 0.0)
    shares[within] = contributions.sum(axis=0)
    return shares


def _association(links: Links, fit: Numbers) -> Numbers:
    """Return for each memory the highest contribution of one neighborhood: a share of the fit of the memory that has the neighborhood."""
    shares = np.zeros(len(fit))
    np.maximum.at(shares, links.target, links.share * fit[links.source])
    return shares


def _best_of(group: Places, fit: Numbers) -> Numbers:
    """Return the best fit in each candidate's session or episode; the candidate's own fit where it has none."""
    best = np.zeros(group.max(initial=-1) + 2)
    np.maximum.at(best, group, fit)
    return np.where(group >= 0, best[group], fit)


def _speaker(candidates: Candidates, named: frozenset[str]) -> Numbers:
    """Return 1 where the query names the speaker."""
    if not named:
        return np.zeros(len(candidates))
    matches = {role: float(not named.isdisjoint(speaker_words(role))) for role in set(candidates.role)}
    return np.array([matches[role] for role in candidates.role])


def _nearness(span: TimeSpan | None, moments: Places) -> Numbers:
    """Return the nearness of each moment to the time that the query mentions, 0 to 1: `TimeSpan.nearness` of many."""
    if span is None:
        return np.zeros(len(moments))
    start, end = microseconds(span.start), microseconds(span.end)
    shift: Numbers | float = 0.0
    if span.yearly:
        days = np.floor_divide(moments - (start + end) // 2, _DAY)
        shift = np.round(days / YEAR_DAYS) * (YEAR_DAYS * _DAY)
    away = np.maximum(np.maximum(start + shift - moments, moments - end - shift), 0.0)
    nearness: Numbers = np.exp(-away / (_DAY * NEARNESS_DAYS))
    return nearness


def _effective_importance(candidates: Candidates) -> Numbers:
    """Return the importance with the gain by use: `forgetting.effective_importance` of many."""
    gain = np.minimum(1.0, BOOST * np.log1p(np.maximum(0.0, candidates.uses)))
    raised: Numbers = candidates.importance + (1.0 - candidates.importance) * gain
    return raised


def _retained(candidates: Candidates, now: datetime) -> Numbers:
    """Return the share of importance that is left since the last use: `forgetting.relevance` of many."""
    days = np.maximum(0.0, (microseconds(now) - candidates.used) / _DAY)
    retained: Numbers = np.exp(-candidates.decay_rate * days)
    return retained


def _congruence(valence: Numbers, mood: float | None) -> Numbers:
    """Return the product of valence and mood, 0 to 1: 0 where either is neutral, or they are opposite."""
    return np.zeros(len(valence)) if mood is None else np.clip(valence * mood, 0.0, 1.0)
