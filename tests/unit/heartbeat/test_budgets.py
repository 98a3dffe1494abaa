"""Budgets: by energy, by a count of actions, by the ticks of a cycle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import (
    FREE_ACTIONS,
    MAX_BONUS,
    ActionCountBudget,
    Budget,
    BudgetBalance,
    BudgetKind,
    EnergyBudget,
    TickBudget,
    budget_of,
)


@pytest.mark.parametrize(
    ("budget", "held", "amount", "most"),
    [
        (EnergyBudget(), {"energy": 0}, 10, 20),
        (EnergyBudget(), {"energy": 19}, 20, 20),
        (ActionCountBudget(), {}, 4, 4),
        (ActionCountBudget(), {"bonus_actions": 1}, 5, 5),
        (ActionCountBudget(), {"bonus_actions": 100}, 8, 8),
        (ActionCountBudget(allowance=2), {"energy": 20}, 2, 2),
        (TickBudget(), {}, 64, 64),
        (TickBudget(allowance=5), {"ticks_left": 2}, 2, 5),
        (TickBudget(allowance=5), {"ticks_left": 0}, 5, 5),
        (TickBudget(allowance=5), {"ticks_left": 9}, 9, 9),
    ],
)
def test_a_beat_begins_with_what_its_budget_gives(
    budget: Budget, held: dict[str, Any], amount: float, most: float
) -> None:
    holdings = BudgetBalance(**held)
    assert (budget.begin(holdings), budget.most(holdings)) == (amount, most)


@pytest.mark.parametrize(
    ("budget", "left", "rests", "columns"),
    [
        (EnergyBudget(), 6.0, 2, {"energy": 6.0}),
        (ActionCountBudget(), 0.0, 0, {"bonus_actions": 0}),
        (ActionCountBudget(), 2.0, 1, {"bonus_actions": 0}),
        (ActionCountBudget(), 2.0, 2, {"bonus_actions": 1}),
        (ActionCountBudget(), 0.0, 5, {"bonus_actions": 2}),
        (ActionCountBudget(), 0.0, 50, {"bonus_actions": MAX_BONUS}),
        (TickBudget(), 3.0, 2, {"ticks_left": 3}),
    ],
)
def test_what_is_carried_over_is_the_budgets_own(
    budget: Budget, left: float, rests: int, columns: dict[str, Any]
) -> None:
    assert budget.settle(left, rests=rests) == columns


@pytest.mark.parametrize("budget", [ActionCountBudget(), TickBudget()])
def test_who_counts_actions_counts_each_as_one_and_a_look_as_none(budget: Budget) -> None:
    assert {name: budget.price(spec) for name, spec in ACTIONS.items()} == {
        name: 0 if name in FREE_ACTIONS else 1 for name in ACTIONS
    }


def test_energy_has_the_prices_of_the_source() -> None:
    assert all(EnergyBudget().price(spec) == spec.cost for spec in ACTIONS.values())
    offers = ACTIONS.offers(ACTIONS, price=ActionCountBudget().price)
    assert {offer.cost for offer in offers if offer.name not in FREE_ACTIONS} == {1}


@pytest.mark.parametrize(
    ("kind", "allowance", "budget"),
    [
        ("energy", None, EnergyBudget()),
        ("energy", 3, EnergyBudget()),
        ("actions", None, ActionCountBudget()),
        ("actions", 6, ActionCountBudget(allowance=6)),
        ("ticks", None, TickBudget(allowance=64)),
        ("ticks", 6, TickBudget(allowance=6)),
    ],
)
def test_a_policy_names_its_budget(kind: str, allowance: int | None, budget: Budget) -> None:
    assert budget_of(kind, allowance) == budget
    assert budget_of(kind, allowance).kind == kind


def test_a_kind_that_does_not_exist_is_told() -> None:
    with pytest.raises(ValueError, match="'money'"):
        budget_of("money")


@given(
    st.sampled_from(BudgetKind),
    st.floats(0, 20),
    st.integers(0, 50),
    st.integers(0, 200),
    st.lists(st.sampled_from(sorted(ACTIONS)), max_size=12),
)
def test_nothing_is_spent_that_is_not_there(
    kind: BudgetKind, energy: float, bonus: int, ticks: int, wanted: list[str]
) -> None:
    budget = budget_of(kind)
    held = BudgetBalance(energy=energy, bonus_actions=bonus, ticks_left=ticks)
    left = budget.begin(held)
    assert left <= budget.most(held)
    for name in wanted:
        cost = budget.price(ACTIONS[name])
        if budget.can_pay(left, cost):
            left = budget.spend(left, cost)
        else:
            with pytest.raises(ValueError, match="the cost must be"):
                budget.spend(left, cost)
    assert left >= 0
    assert all(value >= 0 for value in budget.settle(left, rests=wanted.count("rest")).values())
