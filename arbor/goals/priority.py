"""The priority of goals: the formula of seed 003, 10.2."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

from arbor.agents.genome import AgentTraits
from arbor.goals.values import DEFAULT_PRIORITY, GoalSource

#: The urgency of a deadline within a day.
PRESSING = 1.5
# Urgency by the time left (the origin of seed 000): the first limit that the time left does not exceed.
URGENCY_BY_TIME_LEFT = (
    (timedelta(0), 2.0),
    (timedelta(hours=1), 1.8),
    (timedelta(hours=24), PRESSING),
    (timedelta(days=7), 1.2),
)
URGENCY_WITHOUT_HURRY = 1.0

# The reward by source, for goals that state none: most for requests of the user and for survival, least for curiosity.
# Experience changes it (`satisfaction.expected_reward`).
REWARD_BY_SOURCE: Mapping[GoalSource, float] = MappingProxyType(
    {
        GoalSource.USER_REQUEST: 1.0,
        GoalSource.SURVIVAL: 1.0,
        GoalSource.OPPORTUNITY: 0.8,
        GoalSource.ROLE: 0.7,
        GoalSource.DERIVED: 0.6,
        GoalSource.EXTERNAL: 0.6,
        GoalSource.IDENTITY: 0.5,
        GoalSource.SOCIAL: 0.5,
        GoalSource.CURIOSITY: 0.3,
    }
)
SOCIAL_BY_SOURCE: Mapping[GoalSource, float] = MappingProxyType(
    {GoalSource.SOCIAL: 1.0, GoalSource.USER_REQUEST: 0.8, GoalSource.EXTERNAL: 0.4}
)
NOVELTY_BY_SOURCE: Mapping[GoalSource, float] = MappingProxyType(
    {GoalSource.CURIOSITY: 1.0, GoalSource.OPPORTUNITY: 0.7, GoalSource.EXTERNAL: 0.5}
)
NOVELTY_OTHERWISE = 0.2
# For actions without experience: neither a match nor a mismatch.
CAPABILITY_UNKNOWN = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class PriorityTerms:
    """The terms of the formula: urgency from 0 (of no priority) to 4 (overdue, of the highest), the others from 0 to 1."""

    urgency: float
    reward: float
    capability: float
    novelty: float
    social: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PriorityWeights:
    """The weights of the terms for one agent; the defaults are those of an agent without traits."""

    urgency: float = 1.0
    reward: float = 0.75
    capability: float = 0.75
    novelty: float = 0.25
    social: float = 0.25

    @classmethod
    def of(cls, traits: AgentTraits) -> PriorityWeights:
        """Derive the weights from a genome's traits (seed 003, 10.2)."""
        return cls(
            urgency=1.0,
            reward=0.5 + 0.5 * (1.0 - traits.quality_vs_speed),
            capability=0.5 + 0.5 * (1.0 - traits.depth_vs_breadth),
            novelty=0.5 * traits.risk_tolerance,
            social=0.5 * traits.collaboration,
        )


def priority(terms: PriorityTerms, weights: PriorityWeights) -> float:
    """Return a goal's priority: the weighted sum of its terms; orders goals within a state."""
    return (
        weights.urgency * terms.urgency
        + weights.reward * terms.reward
        + weights.capability * terms.capability
        + weights.novelty * terms.novelty
        + weights.social * terms.social
    )


def urgency(deadline: datetime | None, now: datetime) -> float:
    """Return the urgency of a deadline, from 1 (none, or far off) to 2 (passed)."""
    if deadline is None:
        return URGENCY_WITHOUT_HURRY
    left = deadline - now
    return next((value for limit, value in URGENCY_BY_TIME_LEFT if left <= limit), URGENCY_WITHOUT_HURRY)


def capability_match(actions: Collection[str], learned: Mapping[str, Sequence[int]]) -> float:
    """Return an agent's capability for a goal, 0 to 1: the mean share of successes over its actions.

    `learned` is {action: [attempts, successes]}. An action never tried counts as 0.5, and so does a goal of which no step
    is known.
    """
    shares = [
        counts[1] / counts[0] if (counts := learned.get(action)) and counts[0] > 0 else CAPABILITY_UNKNOWN
        for action in actions
    ]
    return min(1.0, sum(shares) / len(shares)) if shares else CAPABILITY_UNKNOWN


def estimate_terms(
    source: GoalSource,
    *,
    fraction: float,
    deadline: datetime | None,
    now: datetime,
    reward: float | None = None,
    capability: float = CAPABILITY_UNKNOWN,
    stated: int = DEFAULT_PRIORITY,
) -> PriorityTerms:
    """Estimate a goal's terms from its source, its fraction (0 to 1) and its deadline.

    `reward` is the expected reward (None: by the source), `capability` the result of `capability_match`.
    The stated priority, 0 to 100, scales the urgency (the origin of seed 000); the usual one leaves it as it is.
    """
    novelty = NOVELTY_BY_SOURCE.get(source, NOVELTY_OTHERWISE)
    return PriorityTerms(
        urgency=urgency(deadline, now) * stated / DEFAULT_PRIORITY,
        reward=REWARD_BY_SOURCE[source] if reward is None else reward,
        capability=capability,
        novelty=novelty * (1.0 - fraction),
        social=SOCIAL_BY_SOURCE.get(source, 0.0),
    )
