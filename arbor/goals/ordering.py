"""Compute the priorities of an agent's goals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from arbor.goals.priority import PriorityWeights, capability_match, estimate_terms, priority
from arbor.goals.satisfaction import ExperiencedReward, expected_reward
from arbor.goals.values import DEFAULT_PRIORITY, GoalSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
    """The agent's inputs of the priority formula."""

    weights: PriorityWeights
    #: {action: [attempts, successes]}
    learned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    experienced: Mapping[GoalSource, ExperiencedReward] = field(default_factory=dict)
    now: datetime


def compute_priority(
    scale: Scale,
    source: GoalSource,
    *,
    fraction: float,
    deadline: datetime | None,
    stated_reward: float | None,
    actions: Collection[str],
    stated: int = DEFAULT_PRIORITY,
) -> float:
    """Compute a goal's priority; `actions` are those that its steps use, `stated_reward` its stated worth, `stated` its stated priority."""
    terms = estimate_terms(
        source,
        fraction=fraction,
        deadline=deadline,
        now=scale.now,
        reward=expected_reward(source, stated_reward, scale.experienced.get(source)),
        capability=capability_match(actions, scale.learned),
        stated=stated,
    )
    return priority(terms, scale.weights)
