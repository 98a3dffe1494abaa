"""The satisfaction of closed goals: the reinforcement signal of seed 003, 3.9, and the rewards expected of later goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from arbor.goals.priority import NOVELTY_BY_SOURCE, NOVELTY_OTHERWISE, REWARD_BY_SOURCE, SOCIAL_BY_SOURCE
from arbor.goals.values import GoalSource

#: From this fraction on, an abandoned goal counts as reached in part.
PARTLY_FROM = 0.5
#: The change of reputation by one goal that matters to others.
REPUTATION_STEP = 0.1
#: The prior worth of a source counts like this many closed goals.
PRIOR_GOALS = 3


class GoalOutcome(StrEnum):
    """The outcome of a goal (seed 003, 3.4)."""

    #: The goal was completed.
    SUCCESS = "success"
    #: The goal was abandoned with less than half of it done.
    FAILURE = "failure"
    #: The goal was abandoned with half of it or more done.
    PARTIAL = "partial"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExperiencedReward:
    """The results of an agent's goals of one source: the mean reward (0 to 1), and the number of goals."""

    mean: float
    goals: int


def read_experienced(results: Mapping[str, Sequence[Any]]) -> dict[GoalSource, ExperiencedReward]:
    """Parse the results of goals by source from JSON: {source: [mean, goals]}."""
    return {
        GoalSource(source): ExperiencedReward(mean=mean, goals=goals)
        for source, (mean, goals) in results.items()
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalSatisfaction:
    """The satisfaction of a closed goal: rewards and novelty from 0 to 1, reputation from -1 to 1, effort in heartbeats."""

    outcome: GoalOutcome
    reward_actual: float
    reward_expected: float
    reputation_delta: float
    novelty: float
    effort: int


def worth(source: GoalSource, stated: float | None) -> float:
    """Return a goal's worth, 0 to 1: as stated at its creation, else by its source."""
    return REWARD_BY_SOURCE[source] if stated is None else stated


def expected_reward(source: GoalSource, stated: float | None, experienced: ExperiencedReward | None) -> float:
    """Return a goal's expected reward, 0 to 1: its worth, drawn towards the mean reward of its source.

    The result is a running mean in which the worth counts like `PRIOR_GOALS` earlier goals. A stated worth is returned
    unchanged.
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
    experienced: ExperiencedReward | None,
    effort: int,
) -> GoalSatisfaction:
    """Compute the satisfaction of a closed goal, `fraction` of it done.

    The platform has no currency: the reward is the whole worth of a completed goal, and the done share of the worth of a
    goal that was abandoned half-way or later.
    """
    if completed:
        outcome, share = GoalOutcome.SUCCESS, 1.0
    elif fraction >= PARTLY_FROM:
        outcome, share = GoalOutcome.PARTIAL, fraction
    else:
        outcome, share = GoalOutcome.FAILURE, 0.0
    social = SOCIAL_BY_SOURCE.get(source, 0.0)
    return GoalSatisfaction(
        outcome=outcome,
        reward_actual=worth(source, stated) * share,
        reward_expected=expected_reward(source, stated, experienced),
        reputation_delta=REPUTATION_STEP * social * (1.0 if completed else -1.0),
        novelty=NOVELTY_BY_SOURCE.get(source, NOVELTY_OTHERWISE),
        effort=effort,
    )
