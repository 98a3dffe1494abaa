"""Energy policies: merged, changed and checked."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.agents.energy import ALWAYS_FREE, EnergyPolicy, EnergyTerms, check_terms, terms_of
from arbor.errors import Invalid
from arbor.heartbeat.actions import ACTIONS, DEFAULT_COSTS


def test_terms_without_a_policy_are_the_defaults() -> None:
    # Seed 004, 2.2.
    assert terms_of() == terms_of(EnergyPolicy()) == EnergyTerms(regeneration=10, maximum=20, costs={})


def test_the_later_policy_takes_precedence_field_by_field() -> None:
    tenant = EnergyPolicy(regeneration=6, maximum=30, costs={"recall": 2, "reflect": 3})
    own = EnergyPolicy(regeneration=4, costs={"recall": 0})
    assert terms_of(tenant, own) == EnergyTerms(regeneration=4, maximum=30, costs={"recall": 0, "reflect": 3})


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({"regeneration": 5}, {"regeneration": 5.0, "maximum": 30.0, "costs": {"recall": 2}}),
        ({"maximum": None}, {"costs": {"recall": 2}}),
        ({"costs": {"reflect": 3}}, {"maximum": 30.0, "costs": {"recall": 2, "reflect": 3}}),
        ({"costs": {"recall": None}}, {"maximum": 30.0}),
        (None, {}),
    ],
)
def test_a_change_leaves_what_is_not_named(changes: dict[str, Any] | None, left: dict[str, Any]) -> None:
    policy = EnergyPolicy(maximum=30, costs={"recall": 2})
    assert policy.changed(changes).to_json() == left


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regeneration": 0}, "the energy that comes back at a heartbeat is above 0 and at most 1000, got 0"),
        ({"regeneration": "ten"}, "above 0 and at most 1000, got 'ten'"),
        ({"regeneration": float("nan")}, "above 0 and at most 1000, got nan"),
        ({"maximum": 1e9}, "the maximum energy is 1 to 1000, got 1000000000.0"),
        ({"maximum": True}, "the maximum energy is 1 to 1000, got True"),
        ({"costs": {"recall": -1}}, "the energy cost of recall is a whole number from 0 to 1000, got -1"),
        ({"costs": {"recall": 1.5}}, "the energy cost of recall is a whole number from 0 to 1000, got 1.5"),
        ({"costs": 3}, "energy costs are numbers by action, as recall: 2, got 3"),
        ({"decay": 3}, "an energy policy has regeneration, maximum, costs, got 'decay'"),
    ],
)
def test_a_wrong_value_is_refused_with_what_would_be_right(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as refused:
        EnergyPolicy().changed(changes)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (EnergyTerms(regeneration=31), "comes back at a heartbeat is at most the maximum of 20, got 31"),
        (EnergyTerms(costs={"recall": 31}), "the energy cost of recall is 0 to the maximum of 20, got 31"),
        (EnergyTerms(costs={"rest": 1}), "rest is always free; actions with a price are recall, "),
        (EnergyTerms(costs={"fly": 1}), "there is no action 'fly'; actions with a price are recall, "),
        (
            EnergyTerms(maximum=5, regeneration=5),
            "with a maximum of 5 energy, inquire_deep (6), reach_out_public (7) could never be paid: set a maximum of"
            " at least 7, or lower costs with it",
        ),
    ],
)
def test_terms_that_cannot_work_are_refused(terms: EnergyTerms, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_terms(terms, default_costs=DEFAULT_COSTS)
    assert message in str(refused.value)


def test_terms_at_their_bounds_are_accepted() -> None:
    costs = dict.fromkeys(set(ACTIONS) - ALWAYS_FREE, 1)
    check_terms(EnergyTerms(regeneration=1, maximum=1, costs=costs), default_costs=DEFAULT_COSTS)
    check_terms(EnergyTerms(regeneration=20, costs={"recall": 20}), default_costs=DEFAULT_COSTS)


def test_free_actions_are_those_without_a_default_price() -> None:
    assert {name for name, cost in DEFAULT_COSTS.items() if cost == 0} == ALWAYS_FREE
