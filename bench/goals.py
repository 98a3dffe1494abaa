"""Goal prioritization: the time to sort a full backlog of 50 goals."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from arbor.agents.genome import AgentTraits
from arbor.goals.ordering import PriorityInputs, compute_priority
from arbor.goals.priority import PriorityWeights
from arbor.goals.satisfaction import ExperiencedReward
from arbor.goals.values import MAX_OPEN, GoalSource
from bench.support.figures import quantile, times_ms

#: Seed 003, 7.
BAR_MS = 1.0
_NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
_TRAITS = AgentTraits(risk_tolerance=0.6, collaboration=0.4, depth_vs_breadth=0.5, quality_vs_speed=0.3)
_LEARNED = {"recall": [40, 31], "connect": [12, 5], "reflect": [9, 9]}
_EXPERIENCED = {source: ExperiencedReward(mean=0.4, goals=7) for source in GoalSource}


def measure(*, rounds: int) -> dict[str, Any]:
    """Return the processor time to sort a full backlog, over a number of rounds."""
    rows = _backlog(MAX_OPEN)
    durations = times_ms(lambda: _sort_goals(rows), rounds, clock=time.thread_time)
    return {
        "goals": len(rows),
        "rounds": rounds,
        "p50_ms": quantile(durations, 0.5),
        "p95_ms": quantile(durations, 0.95),
        "bar_ms": BAR_MS,
        "within_bar": quantile(durations, 0.95) < BAR_MS,
    }


def _sort_goals(rows: list[dict[str, Any]]) -> list[tuple[float, int]]:
    priority_inputs = PriorityInputs(
        weights=PriorityWeights.of(_TRAITS), learned=_LEARNED, experienced=_EXPERIENCED, now=_NOW
    )
    return sorted((-compute_priority(priority_inputs, **row), position) for position, row in enumerate(rows))


def _backlog(size: int) -> list[dict[str, Any]]:
    rng = random.Random(7)
    return [
        {
            "source": rng.choice(list(GoalSource)),
            "fraction": rng.random(),
            "deadline": rng.choice([None, _NOW + timedelta(hours=rng.uniform(-5, 300))]),
            "stated_reward": rng.choice([None, rng.random()]),
            "actions": rng.sample(["recall", "connect", "reflect", "rest"], 2),
        }
        for _ in range(size)
    ]
