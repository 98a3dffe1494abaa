"""A backlog in order: each goal weighed by the formula, with what its agent is like, can do and has experienced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from arbor.goals.priority import PriorityWeights, capability_match, estimate_terms, priority
from arbor.goals.satisfaction import Experienced, expected_reward
from arbor.goals.values import GoalSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """What the goals of one agent are weighed by."""

    weights: PriorityWeights
    #: {action: [attempts, successes]}
    learned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    experienced: Mapping[GoalSource, Experienced] = field(default_factory=dict)
    now: datetime


def weigh(
    scale: Scale,
    source: GoalSource,
    *,
    fraction: float,
    deadline: datetime | None,
    stated_reward: float | None,
    actions: Collection[str],
) -> float:
    """Return a goal's priority; `actions` are those that its steps use, `stated_reward` what it was said to be worth."""
    terms = estimate_terms(
        source,
        fraction=fraction,
        deadline=deadline,
        now=scale.now,
        reward=expected_reward(source, stated_reward, scale.experienced.get(source)),
        capability=capability_match(actions, scale.learned),
    )
    return priority(terms, scale.weights)
