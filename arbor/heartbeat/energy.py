"""The energy budget and the prices of the actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Seed 004, 2.2.
REGENERATION = 10.0
MAX_ENERGY = 20.0
MIN_ENERGY = 0.0

# Seed 004, 2.4.
ACTION_COSTS: Mapping[str, int] = {
    "observe": 0,
    "review_goals": 0,
    "remember": 0,
    "recall": 1,
    "connect": 1,
    "reprioritize": 1,
    "reflect": 2,
    "maintain": 2,
    "brainstorm_goals": 3,
    "inquire_shallow": 3,
    "synthesize": 4,
    "reach_out_user": 5,
    "inquire_deep": 6,
    "reach_out_public": 7,
    "rest": 0,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyBudget:
    """The arithmetic of energy: never above the maximum, never negative."""

    regeneration: float = REGENERATION
    maximum: float = MAX_ENERGY

    def regenerate(self, energy: float) -> float:
        """Return the energy at the start of a heartbeat; the previous remainder carries over."""
        return min(max(energy, MIN_ENERGY) + self.regeneration, self.maximum)

    def can_pay(self, energy: float, cost: float) -> bool:
        return energy >= cost

    def spend(self, energy: float, cost: float) -> float:
        """Return the remainder; raises ValueError for a cost that is negative or not covered."""
        if not 0 <= cost <= energy:
            raise ValueError(f"the cost must be from 0 to the energy there is ({energy:g}), got {cost:g}")
        return energy - cost
