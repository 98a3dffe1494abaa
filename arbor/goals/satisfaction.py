"""What an ended goal was worth: the reinforcement signal of seed 003, 3.9, and what later goals learn from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from arbor.goals.priority import NOVELTY_BY_SOURCE, NOVELTY_OTHERWISE, REWARD_BY_SOURCE, SOCIAL_BY_SOURCE
from arbor.goals.values import GoalSource

#: A goal given up with so much of it done was reached in part. Ours.
PARTLY_FROM = 0.5
#: How much one goal that others care for changes how the agent stands with them. Ours.
REPUTATION_STEP = 0.1
#: What a source is thought to be worth from the start counts like so many goals that turned out so. Ours.
PRIOR_GOALS = 3


class GoalOutcome(StrEnum):
    """How a goal resolved (seed 003, 3.4)."""

    #: It was completed.
    SUCCESS = "success"
    #: It was given up.
    FAILURE = "failure"
    #: It was given up, with half of it or more done.
    PARTIAL = "partial"


@dataclass(frozen=True, kw_only=True, slots=True)
class Experienced:
    """What goals of one source came to so far: the mean of their rewards (0 to 1), and how many there were."""

    mean: float
    goals: int


def read_experienced(found: Mapping[str, Sequence[Any]]) -> dict[GoalSource, Experienced]:
    """Return what goals came to by their source, from JSON: {source: [mean, goals]}."""
    return {
        GoalSource(source): Experienced(mean=mean, goals=goals) for source, (mean, goals) in found.items()
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    """The signal; rewards and novelty from 0 to 1, reputation from -1 to 1, effort in heartbeats."""

    outcome: GoalOutcome
    reward_actual: float
    reward_expected: float
    reputation_delta: float
    novelty: float
    effort: int


def worth(source: GoalSource, stated: float | None) -> float:
    """Return what reaching a goal is worth, 0 to 1: as stated when it was taken up, else by its source."""
    return REWARD_BY_SOURCE[source] if stated is None else stated


def expected_reward(source: GoalSource, stated: float | None, experienced: Experienced | None) -> float:
    """Return what a goal is expected to bring, 0 to 1: its worth, drawn towards what goals of its source came to.

    A running mean in which the worth counts like `PRIOR_GOALS` earlier goals. A worth that was stated is not touched.
    """
    base = worth(source, stated)
    if stated is not None or experienced is None or experienced.goals <= 0:
        return base
    return (base * PRIOR_GOALS + experienced.mean * experienced.goals) / (PRIOR_GOALS + experienced.goals)


def satisfaction(
    source: GoalSource,
    *,
    completed: bool,
    fraction: float,
    stated: float | None,
    experienced: Experienced | None,
    effort: int,
) -> Signal:
    """Return the signal of a goal that has ended, `fraction` of it done.

    The platform has no currency: a goal brings its worth when it is completed, and the share of it that is done when it is
    given up half-way or later.
    """
    if completed:
        outcome, share = GoalOutcome.SUCCESS, 1.0
    elif fraction >= PARTLY_FROM:
        outcome, share = GoalOutcome.PARTIAL, fraction
    else:
        outcome, share = GoalOutcome.FAILURE, 0.0
    social = SOCIAL_BY_SOURCE.get(source, 0.0)
    return Signal(
        outcome=outcome,
        reward_actual=worth(source, stated) * share,
        reward_expected=expected_reward(source, stated, experienced),
        reputation_delta=REPUTATION_STEP * social * (1.0 if completed else -1.0),
        novelty=NOVELTY_BY_SOURCE.get(source, NOVELTY_OTHERWISE),
        effort=effort,
    )
