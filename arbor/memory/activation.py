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
from arbor.memory.neighborhood import HIGHEST

#: What of a memory's activation reaches its closest neighbor; those less close get less.
SPREAD = 0.5
#: As present as a memory can be, and what is as good as forgotten.
CAP = 1.0
FLOOR = 0.01
#: Memories that one recall brings to mind, and those that are kept there.
MOST_REACHED = 64
MOST_KEPT = 500
#: The most present ones, which say what the agent's mind is on.
MOST_TELLING = 100
#: What an agent is shown of its clusters.
THEMES_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveMemory:
    """A memory that is present in mind, and how much: FLOOR to 1."""

    id: UUID
    level: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveCluster:
    """A cluster that is present in mind: what its active members add up to, and how many they are."""

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
    """Return what is left of a level: half after each half life; all of it when the clock has jumped back."""
    return level * math.pow(0.5, max(0.0, elapsed.total_seconds()) / half_life.total_seconds())


def levels_after(
    levels: npt.NDArray[np.float64], elapsed: npt.NDArray[np.int64], half_life: timedelta
) -> npt.NDArray[np.float64]:
    """Return `level_after` of many, with microseconds elapsed; of none that is below FLOOR anything is left."""
    halvings = np.maximum(0, elapsed) / (half_life / timedelta(microseconds=1))
    left = np.clip(levels, 0.0, CAP) * np.exp2(-halvings)
    return np.where(left >= FLOOR, left, 0.0)


def fades_within(half_life: timedelta) -> timedelta:
    """Return the time after which nothing of any level is left above FLOOR."""
    return half_life * math.log2(CAP / FLOOR)


def sources(scores: Mapping[UUID, float]) -> dict[UUID, float]:
    """Return how present each recalled memory becomes, 0 to 1: its share of the best score.

    Scores mean something only beside each other. If none is above 0 (nothing was asked for), all count the same.
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
    """Return what recalled memories of these levels bring to mind, themselves included, one step far.

    A neighbor gets SPREAD of the level, by its share of the highest weight there is; what comes from several adds up to
    at most CAP; a memory below FLOOR is not activated.
    """
    reached: dict[UUID, float] = dict(levels)
    for memory_id, level in levels.items():
        for other, weight in neighborhoods.get(memory_id, {}).items():
            reached[other] = reached.get(other, 0.0) + level * SPREAD * weight / HIGHEST
    return {memory_id: min(CAP, level) for memory_id, level in reached.items() if level >= FLOOR}
