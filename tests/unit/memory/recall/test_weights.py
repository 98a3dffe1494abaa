"""Weights of the ranker, as an operator writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import ConfigurationInvalid
from arbor.memory.recall.weights import DEFAULT_WEIGHTS, WEIGHT_NAMES, Weights, parse_weights
from arbor.memory.values import ScoreComponents


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("", DEFAULT_WEIGHTS),
        (" , ", DEFAULT_WEIGHTS),
        ("mood=0", Weights(mood=0)),
        (" association = 0.2 ,words=2,", Weights(association=0.2, words=2)),
        ("trust=1e-3", Weights(trust=0.001)),
    ],
)
def test_named_weights_change_and_the_others_stay(text: str, weights: Weights) -> None:
    assert parse_weights(text) == weights


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smell=1", "got 'smell=1'; names are words, meaning, .*mood"),
        ("=1", "names are"),
        ("words", "a number from 0 to 10 after words=, got ''"),
        ("words=much", "a number from 0 to 10 after words=, got 'much'"),
        ("words=-1", "the weight of words must be a number from 0 to 10, got -1"),
        ("words=nan", "the weight of words must be .*, got nan"),
        ("words=inf", "the weight of words must be .*, got inf"),
        ("words=10.5", "the weight of words must be .*, got 10.5"),
    ],
)
def test_an_invalid_weight_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=message):
        parse_weights(text)


@given(weights=st.dictionaries(st.sampled_from(WEIGHT_NAMES), st.floats(0, 10)))
def test_written_weights_are_read_back(weights: dict[str, float]) -> None:
    text = ",".join(f"{name}={value!r}" for name, value in weights.items())
    assert parse_weights(text) == Weights(**weights)


def test_every_score_component_has_a_weight_of_its_name() -> None:
    assert set(ScoreComponents().as_dict()) == set(WEIGHT_NAMES) - {"answer"}
