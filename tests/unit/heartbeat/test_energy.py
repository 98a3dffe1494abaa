"""Energy: regeneration, spending and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import MAX_ENERGY, EnergyBudget

BUDGET = EnergyBudget()


@pytest.mark.parametrize(
    ("left", "expected"),
    [(0, 10), (4, 14), (6, 16), (9, 19), (10, 20), (10.5, 20), (19, 20), (20, 20), (25, 20), (-3, 10)],
)
def test_ten_come_back_and_twenty_are_the_most(left: float, expected: float) -> None:
    assert BUDGET.regenerate(left) == expected


@pytest.mark.parametrize(
    ("energy", "cost", "expected"), [(10, 0, 10), (10, 4, 6), (2, 2, 0), (0, 0, 0), (1.5, 1, 0.5)]
)
def test_spending_takes_the_cost(energy: float, cost: float, expected: float) -> None:
    assert BUDGET.can_pay(energy, cost)
    assert BUDGET.spend(energy, cost) == expected


@pytest.mark.parametrize(("energy", "cost"), [(0, 1), (1, 2), (1.5, 2), (5, -1)])
def test_what_is_not_covered_cannot_be_spent(energy: float, cost: float) -> None:
    with pytest.raises(ValueError, match="the cost must be from 0 to the energy there is"):
        BUDGET.spend(energy, cost)


def test_the_budget_can_be_another() -> None:
    assert EnergyBudget(regeneration=3, maximum=5).regenerate(4) == 5


@pytest.mark.parametrize(
    ("action", "cost"),
    [
        ("observe", 0),
        ("review_goals", 0),
        ("remember", 0),
        ("recall", 1),
        ("connect", 1),
        ("reprioritize", 1),
        ("reflect", 2),
        ("maintain", 2),
        ("brainstorm_goals", 3),
        ("inquire_shallow", 3),
        ("synthesize", 4),
        ("reach_out_user", 5),
        ("inquire_deep", 6),
        ("reach_out_public", 7),
        ("rest", 0),
    ],
)
def test_each_action_costs_what_the_source_says(action: str, cost: int) -> None:
    assert ACTIONS[action].cost == cost


@given(st.lists(st.floats(0, 30), max_size=30))
def test_energy_never_leaves_its_bounds(costs: list[float]) -> None:
    energy = 0.0
    for cost in costs:
        energy = BUDGET.regenerate(energy)
        if BUDGET.can_pay(energy, cost):
            energy = BUDGET.spend(energy, cost)
        assert 0 <= energy <= MAX_ENERGY
