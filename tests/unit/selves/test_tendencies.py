"""Traits and capabilities that actions show."""

from __future__ import annotations

import pytest

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import ActionCountBudget, EnergyBudget, TickBudget
from arbor.heartbeat.results import ActionOutcome, ActionResult, is_effort
from arbor.selves.calibration import CONFIRMED
from arbor.selves.tendencies import (
    MIN_ATTEMPTS,
    MIN_SIGNS,
    TRAITS,
    Tendency,
    band,
    is_another_strength,
    tendencies,
)
from arbor.selves.values import AspectKind


def traits_of(actions: list[str]) -> list[tuple[str, float]]:
    return [(found.name, found.strength) for found in tendencies(actions, {})]


def test_every_action_of_a_trait_exists() -> None:
    assert TRAITS.keys() <= ACTIONS.keys()


@pytest.mark.parametrize("action", TRAITS)
def test_an_action_of_a_trait_is_an_experience_under_some_budget(action: str) -> None:
    prices = [budget.price(ACTIONS[action]) for budget in (EnergyBudget(), ActionCountBudget(), TickBudget())]

    assert any(
        is_effort(ActionResult(index=0, action=action, outcome=ActionOutcome.SUCCESS, summary="", cost=price))
        for price in prices
    )


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ([], []),
        (["connect"] * (MIN_SIGNS - 1), []),
        (["connect"] * MIN_SIGNS, [("connecting", 1.0)]),
        # 12 of 40 are 30 %, 12 of 41 are not.
        (["connect"] * 12 + ["start_workflow"] * 28, [("connecting", 0.3)]),
        (["connect"] * 12 + ["start_workflow"] * 29, []),
        # Two actions that are signs of one trait count together.
        (["inquire_shallow"] * 6 + ["inquire_deep"] * 6, [("curious", 1.0)]),
        (["start_workflow"] * 50, []),
    ],
)
def test_a_trait_is_what_is_done_often(actions: list[str], expected: list[tuple[str, float]]) -> None:
    assert traits_of(actions) == expected


@pytest.mark.parametrize(
    ("attempts", "successes", "strength"),
    [
        (MIN_ATTEMPTS, MIN_ATTEMPTS, 1.0),
        (MIN_ATTEMPTS - 1, MIN_ATTEMPTS - 1, None),
        (10, 8, 0.8),
        (10, 7, None),
    ],
)
def test_a_capability_is_what_succeeds(attempts: int, successes: int, strength: float | None) -> None:
    found = tendencies([], {"inquire_deep": [attempts, successes], "rest": [99, 99]})

    assert [(tendency.name, tendency.strength) for tendency in found] == (
        [] if strength is None else [("inquire deep", strength)]
    )


def test_the_fewest_signs_are_sure_enough_for_a_proposal() -> None:
    actions, learned = ["connect"] * MIN_SIGNS, {"recall": [MIN_ATTEMPTS, MIN_ATTEMPTS]}

    assert [found.confidence for found in tendencies(actions, learned)] == [CONFIRMED, CONFIRMED]


def test_the_surest_come_first() -> None:
    found = tendencies(["connect"] * 30, {"recall": [10, 10]})

    assert [tendency.kind for tendency in found] == [AspectKind.TRAIT, AspectKind.CAPABILITY]


@pytest.mark.parametrize(("one", "other", "same"), [(0.41, 0.69, True), (0.69, 0.7, False), (0.9, 1.0, True)])
def test_a_tendency_is_another_only_in_another_band(one: float, other: float, same: bool) -> None:
    first, second = (
        Tendency(kind=AspectKind.TRAIT, name="curious", strength=strength, confidence=0.8)
        for strength in (one, other)
    )

    assert (first.key == second.key) is same
    assert (band(one) == band(other)) is same


@pytest.mark.parametrize(
    ("before", "after", "is_another"),
    [
        (0.65, 0.7, True),
        (0.7, 0.65, True),
        (0.68, 0.73, True),
        (0.85, 0.9, True),
        (0.66, 0.7, False),
        (0.41, 0.69, False),
    ],
)
def test_a_strength_is_another_from_a_step_into_another_band(
    before: float, after: float, is_another: bool
) -> None:
    assert is_another_strength(before, after) is is_another
