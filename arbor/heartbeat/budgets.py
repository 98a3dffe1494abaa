"""Action budgets: energy by default, or a count of actions, or a cycle of ticks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from arbor.agents.energy import MAX_ENERGY, REGENERATION, EnergyTerms
from arbor.heartbeat.actions import ActionSpec

# Seed 004, "The Action Budget": four actions a heartbeat, and one more at the next for two rests.
BASE_ACTIONS = 4
RESTS_FOR_BONUS = 2
#: The most actions earned by rests.
MAX_BONUS = 4
#: Ticks of a cycle (the origin of seed 003).
DEFAULT_TICKS = 64
#: Free actions: every heartbeat does the same anyway (seed 004, 3.2.1).
FREE_ACTIONS = frozenset({"observe", "review_goals"})


class BudgetKind(StrEnum):
    """The kinds of budgets; a kind names its unit too."""

    #: Energy regenerates at each heartbeat, up to a maximum; each action has its price.
    ENERGY = "energy"
    #: A number of actions in each heartbeat; rests earn more for the next.
    ACTIONS = "actions"
    #: A number of ticks in each cycle, one for each action.
    TICKS = "ticks"


def amount_text(amount: float, unit: str) -> str:
    """Return an amount of a budget with its unit, such as `1 action`, `2 ticks` or `2.5 energy`."""
    return f"{amount:g} {unit.removesuffix('s') if amount == 1 else unit}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetBalance:
    """The columns of an agent's state that budgets write."""

    energy: float = 0.0
    bonus_actions: int = 0
    ticks_left: int = 0


class Budget(ABC):
    """The measure that bounds a heartbeat's actions: amounts are never negative; unless a kind has prices, an action costs 1, a free action 0."""

    __slots__ = ()
    kind: ClassVar[BudgetKind]

    @property
    def unit(self) -> str:
        """Return the unit, as prompts name it."""
        return self.kind.value

    @abstractmethod
    def begin(self, balance: BudgetBalance) -> float:
        """Return the amount at the start of a heartbeat."""

    @abstractmethod
    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        """Return the changed columns of the agent's state, from the remainder and the number of rests."""

    def most(self, balance: BudgetBalance) -> float:
        """Return the largest possible amount at the start of a heartbeat."""
        return self.begin(balance)

    def price(self, spec: ActionSpec) -> int:
        return 0 if spec.name in FREE_ACTIONS else 1

    def spend(self, amount: float, cost: float) -> float:
        """Return the remainder; raises ValueError for a cost that is negative or not covered."""
        if not 0 <= cost <= amount:
            raise ValueError(f"the cost must be from 0 to the {self.unit} left ({amount:g}), got {cost:g}")
        return amount - cost


@dataclass(frozen=True, kw_only=True, slots=True)
class EnergyBudget(Budget):
    """Energy: it regenerates at each heartbeat, and the remainder carries over (seed 004, 2)."""

    kind: ClassVar[BudgetKind] = BudgetKind.ENERGY
    regeneration: float = REGENERATION
    maximum: float = MAX_ENERGY
    #: Prices that differ from the defaults, by action.
    costs: Mapping[str, int] = field(default_factory=dict)

    def most(self, balance: BudgetBalance) -> float:
        return self.maximum

    def begin(self, balance: BudgetBalance) -> float:
        return min(max(balance.energy, 0.0) + self.regeneration, self.maximum)

    def price(self, spec: ActionSpec) -> int:
        return self.costs.get(spec.name, spec.cost)

    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        return {"energy": left}


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionCountBudget(Budget):
    """A count of actions: the remainder is lost, but two rests earn one more at the next heartbeat."""

    kind: ClassVar[BudgetKind] = BudgetKind.ACTIONS
    allowance: int = BASE_ACTIONS

    def begin(self, balance: BudgetBalance) -> float:
        return float(self.allowance + min(balance.bonus_actions, MAX_BONUS))

    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        return {"bonus_actions": min(rests // RESTS_FOR_BONUS, MAX_BONUS)}


@dataclass(frozen=True, kw_only=True, slots=True)
class TickBudget(Budget):
    """Ticks of a cycle; a heartbeat without remaining ticks begins a new cycle, unless the allowance is 0."""

    kind: ClassVar[BudgetKind] = BudgetKind.TICKS
    allowance: int = DEFAULT_TICKS

    def most(self, balance: BudgetBalance) -> float:
        # A cycle may have been given more than its allowance.
        return float(max(self.allowance, balance.ticks_left))

    def begin(self, balance: BudgetBalance) -> float:
        return float(balance.ticks_left or self.allowance)

    def settle(self, left: float, *, rests: int) -> dict[str, Any]:
        return {"ticks_left": int(left)}


DEFAULT_BUDGET: Budget = EnergyBudget()


def budget_of(kind: str, allowance: int | None = None, energy: EnergyTerms | None = None) -> Budget:
    """Return the budget of a kind; without allowance or energy, its default. Raises ValueError for an unknown kind."""
    match BudgetKind(kind):
        case BudgetKind.ENERGY:
            terms = energy or EnergyTerms()
            return EnergyBudget(regeneration=terms.regeneration, maximum=terms.maximum, costs=terms.costs)
        case BudgetKind.ACTIONS:
            return ActionCountBudget(allowance=allowance or BASE_ACTIONS)
        case BudgetKind.TICKS:
            return TickBudget(allowance=DEFAULT_TICKS if allowance is None else allowance)
