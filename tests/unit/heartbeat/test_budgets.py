"""Action budgets: energy, a count of actions, and the ticks of a cycle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.energy import MAX_ENERGY, EnergyTerms
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
    amount_text,
    budget_of,
)
from arbor.heartbeat.results import ActionOutcome, ActionResult, is_effort


@pytest.mark.parametrize(
    ("budget", "balance", "amount", "most"),
    [
        (EnergyBudget(), {"energy": 0}, 10, 20),
        (EnergyBudget(), {"energy": 19}, 20, 20),
        (ActionCountBudget(), {}, 4, 4),
        (ActionCountBudget(), {"bonus_actions": 1}, 5, 5),
        (ActionCountBudget(), {"bonus_actions": 100}, 8, 8),
        (ActionCountBudget(allowance=2), {"energy": 20}, 2, 2),
        (TickBudget(), {}, 64, 64),
        (TickBudget(allowance=5), {"ticks_left": 2}, 2, 5),
        (TickBudget(allowance=0), {"ticks_left": 2}, 2, 2),
        (TickBudget(allowance=0), {"ticks_left": 0}, 0, 0),
        (TickBudget(allowance=5), {"ticks_left": 0}, 5, 5),
        (TickBudget(allowance=5), {"ticks_left": 9}, 9, 9),
    ],
)
def test_a_heartbeat_begins_with_the_amount_of_its_budget(
    budget: Budget, balance: dict[str, Any], amount: float, most: float
) -> None:
    stored = BudgetBalance(**balance)
    assert (budget.begin(stored), budget.most(stored)) == (amount, most)


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
def test_a_budget_carries_over_only_its_own_columns(
    budget: Budget, left: float, rests: int, columns: dict[str, Any]
) -> None:
    assert budget.settle(left, rests=rests) == columns


@pytest.mark.parametrize("budget", [ActionCountBudget(), TickBudget()])
def test_budgets_of_actions_and_ticks_charge_one_if_not_free(budget: Budget) -> None:
    assert {name: budget.price(spec) for name, spec in ACTIONS.items()} == {
        name: 0 if name in FREE_ACTIONS else 1 for name in ACTIONS
    }


def test_energy_charges_the_default_cost_of_each_action() -> None:
    assert all(EnergyBudget().price(spec) == spec.cost for spec in ACTIONS.values())


def test_offers_state_the_prices_of_the_budget() -> None:
    offers = ACTIONS.offers(ACTIONS, price=ActionCountBudget().price)
    assert {offer.cost for offer in offers if offer.name not in FREE_ACTIONS} == {1}


def test_energy_has_the_terms_of_its_policy() -> None:
    terms = EnergyTerms(regeneration=3, maximum=8, costs={"recall": 5})
    budget = budget_of("energy", energy=terms)
    assert (budget.price(ACTIONS["recall"]), budget.price(ACTIONS["reflect"])) == (5, 2)
    assert [budget.begin(BudgetBalance(energy=energy)) for energy in (0, 6, 20)] == [3, 8, 8]
    assert budget_of("ticks", 6, terms) == TickBudget(allowance=6)


@pytest.mark.parametrize(
    ("action", "outcome", "cost", "effort"),
    [
        ("reflect", ActionOutcome.SUCCESS, 2, True),
        ("reflect", ActionOutcome.SUCCESS, 0, True),
        ("reflect", ActionOutcome.BLOCKED, 0, False),
        ("remember", ActionOutcome.SUCCESS, 0, False),
        ("remember", ActionOutcome.SUCCESS, 1, True),
        ("rest", ActionOutcome.SUCCESS, 1, False),
    ],
)
def test_work_that_a_policy_made_free_is_effort(
    action: str, outcome: ActionOutcome, cost: int, effort: bool
) -> None:
    result = ActionResult(index=0, action=action, outcome=outcome, summary="", cost=cost)
    assert is_effort(result) is effort


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
def test_a_budget_is_built_from_its_kind_and_allowance(
    kind: str, allowance: int | None, budget: Budget
) -> None:
    assert budget_of(kind, allowance) == budget
    assert budget_of(kind, allowance).kind == kind


@pytest.mark.parametrize(
    ("amount", "unit", "text"),
    [
        (1, "actions", "1 action"),
        (0, "ticks", "0 ticks"),
        (1.0, "ticks", "1 tick"),
        (2, "actions", "2 actions"),
        (1, "energy", "1 energy"),
        (2.5, "energy", "2.5 energy"),
    ],
)
def test_an_amount_of_one_has_the_singular_of_its_unit(amount: float, unit: str, text: str) -> None:
    assert amount_text(amount, unit) == text


def test_an_unknown_kind_of_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="'money'"):
        budget_of("money")


@given(
    st.sampled_from(BudgetKind),
    st.floats(0, 20),
    st.integers(0, 50),
    st.integers(0, 200),
    st.lists(st.sampled_from(sorted(ACTIONS)), max_size=12),
)
def test_no_budget_spends_more_than_its_balance(
    kind: BudgetKind, energy: float, bonus: int, ticks: int, wanted: list[str]
) -> None:
    budget = budget_of(kind)
    balance = BudgetBalance(energy=energy, bonus_actions=bonus, ticks_left=ticks)
    left = budget.begin(balance)
    assert left <= budget.most(balance)
    for name in wanted:
        cost = budget.price(ACTIONS[name])
        if left >= cost:
            left = budget.spend(left, cost)
        else:
            with pytest.raises(ValueError, match="the cost must be"):
                budget.spend(left, cost)
    assert left >= 0
    assert all(value >= 0 for value in budget.settle(left, rests=wanted.count("rest")).values())


BUDGET = EnergyBudget()


@pytest.mark.parametrize(
    ("left", "expected"),
    [(0, 10), (4, 14), (6, 16), (9, 19), (10, 20), (10.5, 20), (19, 20), (20, 20), (25, 20), (-3, 10)],
)
def test_ten_energy_regenerate_up_to_twenty(left: float, expected: float) -> None:
    assert BUDGET.begin(BudgetBalance(energy=left)) == expected


@pytest.mark.parametrize(
    ("energy", "cost", "expected"), [(10, 0, 10), (10, 4, 6), (2, 2, 0), (0, 0, 0), (1.5, 1, 0.5)]
)
def test_spending_subtracts_the_cost(energy: float, cost: float, expected: float) -> None:
    assert BUDGET.spend(energy, cost) == expected


@pytest.mark.parametrize(("energy", "cost"), [(0, 1), (1, 2), (1.5, 2), (5, -1)])
def test_an_invalid_cost_cannot_be_spent(energy: float, cost: float) -> None:
    with pytest.raises(ValueError, match="the cost must be from 0 to the energy left"):
        BUDGET.spend(energy, cost)


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
def test_each_action_has_its_default_cost(action: str, cost: int) -> None:
    # Seed 004, 2.4.
    assert ACTIONS[action].cost == cost


@given(st.lists(st.floats(0, 30), max_size=30))
def test_energy_never_leaves_its_bounds(costs: list[float]) -> None:
    energy = 0.0
    for cost in costs:
        energy = BUDGET.begin(BudgetBalance(energy=energy))
        if energy >= cost:
            energy = BUDGET.spend(energy, cost)
        assert 0 <= energy <= MAX_ENERGY
