"""Activation: raised by recalls, spread to neighbors, and halved each hour."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.errors import Invalid
from arbor.memory.neighborhood import HIGHEST_WEIGHT

#: The share of a memory's activation that reaches its closest neighbor; other neighbors get less.
SPREAD = 0.5
#: The highest activation, and the activation below which a memory counts as inactive.
CAP = 1.0
FLOOR = 0.01
#: The most memories that one recall activates, and the most active memories of an agent.
MAX_ACTIVATED = 64
MAX_ACTIVE = 500
#: The number of the most active memories, from which the active clusters are computed.
MAX_FOR_CLUSTERS = 100
#: The largest number of active clusters that an agent is shown.
CLUSTERS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveMemory:
    """An active memory and its activation, FLOOR to 1."""

    id: UUID
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveCluster:
    """An active cluster: the sum of its active members' activation, and their number."""

    id: UUID
    name: str
    keywords: tuple[str, ...]
    emotional_valence: float
    emotional_intensity: float
    activation: float
    members: int
    #: The names of the clusters most related to it.
    related: tuple[str, ...] = ()


def level_after(level: float, elapsed: timedelta, half_life: timedelta) -> float:
    """Return the activation after `elapsed`: half after each half life; unchanged when the clock has jumped back."""
    return level * math.pow(0.5, max(0.0, elapsed.total_seconds()) / half_life.total_seconds())


def levels_after(
    levels: npt.NDArray[np.float64], elapsed: npt.NDArray[np.int64], half_life: timedelta
) -> npt.NDArray[np.float64]:
    """Return `level_after` of many levels, `elapsed` in microseconds; a level below FLOOR becomes 0."""
    halvings = np.maximum(0, elapsed) / (half_life / timedelta(microseconds=1))
    left = np.clip(levels, 0.0, CAP) * np.exp2(-halvings)
    return np.where(left >= FLOOR, left, 0.0)


def fading_time(half_life: timedelta) -> timedelta:
    """Return the time after which any activation is below FLOOR."""
    return half_life * math.log2(CAP / FLOOR)


def initial_levels(scores: Mapping[UUID, float]) -> dict[UUID, float]:
    """Return the activation of each recalled memory, 0 to 1: its share of the best score.

    Scores are comparable only within one recall. If no score is above 0 (a recall without a query), all are equal.
    Raises Invalid for a score that is not finite.
    """
    for memory_id, score in scores.items():
        if not math.isfinite(score):
            raise Invalid(f"a recalled memory's score must be a finite number, got {score} for {memory_id}")
    best = max(scores.values(), default=0.0)
    if best <= 0:
        return dict.fromkeys(scores, CAP)
    return {memory_id: CAP * max(0.0, score) / best for memory_id, score in scores.items()}


def spread(
    levels: Mapping[UUID, float], neighborhoods: Mapping[UUID, Mapping[UUID, float]]
) -> dict[UUID, float]:
    """Spread the activation of recalled memories to their neighbors; return the levels of all of them.

    A neighbor gets SPREAD of the level, times its weight's share of the highest possible weight. Contributions of several
    memories add up to at most CAP; a memory below FLOOR is left out.
    """
    reached: dict[UUID, float] = dict(levels)
    for memory_id, level in levels.items():
        for other, weight in neighborhoods.get(memory_id, {}).items():
            reached[other] = reached.get(other, 0.0) + level * SPREAD * weight / HIGHEST_WEIGHT
    return {memory_id: min(CAP, level) for memory_id, level in reached.items() if level >= FLOOR}
