"""The distance of values and traits from those of birth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.selves.drift import DriftChange, measure_drift

WEIGHTS = st.dictionaries(st.text(min_size=1, max_size=12), st.floats(0, 1), max_size=8)


@given(weights=WEIGHTS)
def test_an_unchanged_agent_has_no_drift(weights: dict[str, float]) -> None:
    assert measure_drift(at_birth=weights, now=weights).share == 0


@given(at_birth=WEIGHTS, now=WEIGHTS)
def test_drift_is_between_zero_and_one(at_birth: dict[str, float], now: dict[str, float]) -> None:
    assert 0 <= measure_drift(at_birth=at_birth, now=now).share <= 1


@pytest.mark.parametrize(
    ("at_birth", "now", "expected"),
    [
        ({}, {}, 0.0),
        ({"honesty": 0.8}, {}, 1.0),
        ({}, {"honesty": 0.8}, 1.0),
        ({"honesty": 0.8}, {"honesty": 0.4}, 0.5),
        ({"honesty": 0.5, "care": 0.5}, {"honesty": 0.5, "speed": 0.5}, 0.6667),
        # The same words, otherwise written.
        ({"Honesty in all things": 0.8}, {"honesty in all  things": 0.8}, 0.0),
    ],
)
def test_drift_is_one_minus_the_weighted_overlap(
    at_birth: dict[str, float], now: dict[str, float], expected: float
) -> None:
    assert measure_drift(at_birth=at_birth, now=now).share == pytest.approx(expected)


def test_the_parts_of_a_drift_are_listed_by_change() -> None:
    drift = measure_drift(
        at_birth={"honesty": 0.8, "care": 0.5, "order": 0.6, "wit": 0.3},
        now={"honesty": 0.8, "care": 0.7, "order": 0.5, "speed": 0.9},
    )
    assert [(part.name, part.change) for part in drift.parts] == [
        ("speed", DriftChange.NEW),
        ("wit", DriftChange.GONE),
        ("care", DriftChange.STRONGER),
        ("order", DriftChange.WEAKER),
        ("honesty", DriftChange.SAME),
    ]


def test_an_equal_name_precedes_a_similar_one() -> None:
    weights = {"I value honesty": 0.9, "I value honesty!": 0.2}
    assert measure_drift(at_birth=weights, now=dict(reversed(weights.items()))).share == 0


def test_the_order_of_names_does_not_change_the_drift() -> None:
    now = {"Honesty in all  things": 0.8, "honesty  in all things": 0.2}
    drifts = [
        measure_drift(at_birth={"honesty in all things": 0.8}, now=dict(names))
        for names in (now.items(), reversed(now.items()))
    ]
    assert drifts[0] == drifts[1]
