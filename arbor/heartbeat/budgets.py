"""Budgets: by what measure an agent may act. Energy is the default; a count of actions and a cycle of ticks are others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from arbor.heartbeat.actions import ActionSpec
from arbor.heartbeat.energy import EnergyBudget

# Seed 004, "The Action Budget": four actions a beat, and one more at the next for each two rests.
BASE_ACTIONS = 4
RESTS_FOR_BONUS = 2
#: So that an agent cannot rest itself rich. Ours: twice the base.
MAX_BONUS = 4
#: Ticks of a cycle; seed 003's origin.
DEFAULT_TICKS = 64
#: Looking is no action: it is done at every heartbeat anyway (seed 004, 3.2.1).
SENSING = frozenset({"observe", "review_goals"})


class BudgetKind(StrEnum):
    """By what measure an agent may act."""

    #: Ten energy come back at each beat, twenty are the most, each action has its price.
    ENERGY = "energy"
    #: So many actions a beat; rest earns more for the next.
    ACTIONS = "actions"
    #: So many ticks a cycle of beats, one for each action; none come back before the next cycle.
    TICKS = "ticks"


@dataclass(frozen=True, kw_only=True, slots=True)
class Holdings:
    """What an agent carries from beat to beat: the columns of its state that budgets write."""

    energy: float = 0.0
    bonus_actions: int = 0
    ticks_left: int = 0


class Budget(Protocol):
    """What a beat may spend, and on what. Amounts are never negative, and nothing is spent that is not there."""

    @property
    def kind(self) -> BudgetKind:
        """Which measure it is."""
        ...

    @property
    def unit(self) -> str:
        """What is spent, as a prompt names it."""
        ...

    def most(self, held: Holdings) -> float:
        """Return the most that there can be at the start of a beat."""
        ...

    def begin(self, held: Holdings) -> float:
        """Return what there is to spend at the start of a beat."""
        ...

    def price(self, spec: ActionSpec) -> int:
        """Return what an action costs."""
        ...

    def affords(self, amount: float, cost: float) -> bool:
        """Return whether the amount covers the cost."""
        ...

    def spend(self, amount: float, cost: float) -> float:
        """Return what is left after paying. Raises ValueError for a cost that is not covered, or negative."""
        ...

    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        """Return the columns of the agent's state that change, given what is left and how often it rested."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ByEnergy(EnergyBudget):
    """Energy: it comes back at each beat, and what is left carries over (seed 004, 2)."""

    @property
    def kind(self) -> BudgetKind:
        """Which measure it is."""
        return BudgetKind.ENERGY

    @property
    def unit(self) -> str:
        """What is spent."""
        return "energy"

    def most(self, held: Holdings) -> float:
        """Return the most energy there can be."""
        return self.maximum

    def begin(self, held: Holdings) -> float:
        """Return the energy at the start of a beat."""
        return self.regenerate(held.energy)

    def price(self, spec: ActionSpec) -> int:
        """Return the action's price in energy."""
        return spec.cost

    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        """Carry what is left over; a rest needs no more."""
        return {"energy": left}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Counted:
    """What the budgets that count actions have in common: one for each, none for a look."""

    def price(self, spec: ActionSpec) -> int:
        """Return one, or nothing for a look."""
        return 0 if spec.name in SENSING else 1

    def affords(self, amount: float, cost: float) -> bool:
        """Return whether the amount covers the cost."""
        return amount >= cost

    def spend(self, amount: float, cost: float) -> float:
        """Return what is left after paying."""
        return EnergyBudget().spend(amount, cost)


@dataclass(frozen=True, kw_only=True, slots=True)
class ByActions(_Counted):
    """A count of actions; what is not used is lost, but two rests earn one more at the next beat."""

    allowance: int = BASE_ACTIONS

    @property
    def kind(self) -> BudgetKind:
        """Which measure it is."""
        return BudgetKind.ACTIONS

    @property
    def unit(self) -> str:
        """What is spent."""
        return "actions"

    def most(self, held: Holdings) -> float:
        """Return this beat's actions."""
        return self.begin(held)

    def begin(self, held: Holdings) -> float:
        """Return this beat's actions: the base, and what resting has earned."""
        return float(self.allowance + min(held.bonus_actions, MAX_BONUS))

    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        """Keep what resting has earned."""
        return {"bonus_actions": min(rests // RESTS_FOR_BONUS, MAX_BONUS)}


@dataclass(frozen=True, kw_only=True, slots=True)
class ByTicks(_Counted):
    """Ticks of a cycle; a beat that finds none left begins a new cycle."""

    allowance: int = DEFAULT_TICKS

    @property
    def kind(self) -> BudgetKind:
        """Which measure it is."""
        return BudgetKind.TICKS

    @property
    def unit(self) -> str:
        """What is spent."""
        return "ticks"

    def most(self, held: Holdings) -> float:
        """Return a whole cycle's ticks, or what is left of one that was given more."""
        return float(max(self.allowance, held.ticks_left))

    def begin(self, held: Holdings) -> float:
        """Return what is left of the cycle, or a new cycle's ticks."""
        return float(held.ticks_left or self.allowance)

    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        """Carry what is left of the cycle over."""
        return {"ticks_left": int(left)}


DEFAULT_BUDGET: Budget = ByEnergy()


def budget_of(kind: str, allowance: int | None = None) -> Budget:
    """Return the budget of this kind; no allowance, or none at all, means the default.

    Raises ValueError for a kind that does not exist.
    """
    match BudgetKind(kind):
        case BudgetKind.ENERGY:
            return ByEnergy()
        case BudgetKind.ACTIONS:
            return ByActions(allowance=allowance or BASE_ACTIONS)
        case BudgetKind.TICKS:
            return ByTicks(allowance=allowance or DEFAULT_TICKS)
