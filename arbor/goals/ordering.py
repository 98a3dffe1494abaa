"""Compute the priorities of an agent's goals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from arbor.goals.priority import PriorityWeights, capability_match, estimate_terms, priority
from arbor.goals.satisfaction import ExperiencedReward, expected_reward
from arbor.goals.values import DEFAULT_PRIORITY, GoalSource


@dataclass(frozen=True, kw_only=True, slots=True)
class PriorityInputs:
    """The inputs of the priority formula that all goals of an agent share."""

    weights: PriorityWeights
    #: {action: [attempts, successes]}
    learned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    experienced: Mapping[GoalSource, ExperiencedReward] = field(default_factory=dict)
    now: datetime


def compute_priority(
    inputs: PriorityInputs,
    source: GoalSource,
    *,
    fraction: float,
    deadline: datetime | None,
    stated_reward: float | None,
    actions: Collection[str],
    stated: int = DEFAULT_PRIORITY,
) -> float:
    """Compute a goal's priority, as `arbor.goals.priority.priority` does; a higher one comes first.

    `fraction` is the progress, 0 to 1; `actions` are those that the goal's steps use; `stated` is the stated priority.
    Without a `stated_reward`, the experience with the goal's source counts.
    """
    terms = estimate_terms(
        source,
        fraction=fraction,
        deadline=deadline,
        now=inputs.now,
        reward=expected_reward(source, stated_reward, inputs.experienced.get(source)),
        capability=capability_match(actions, inputs.learned),
        stated=stated,
    )
    return priority(terms, inputs.weights)
