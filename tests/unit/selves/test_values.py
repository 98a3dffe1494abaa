"""Valid beliefs, aspects and preferences."""

from __future__ import annotations

import math
from typing import Any

import pytest

from arbor.errors import Invalid
from arbor.selves.boundaries import BoundaryResponse, BoundaryType, NewBoundary
from arbor.selves.values import (
    TEXT_LENGTH,
    AspectKind,
    BeliefCategory,
    NewAspect,
    NewBelief,
    check_preference,
)


def belief(**changes: Any) -> NewBelief:
    return NewBelief(**({"statement": "Ice holds after a week.", "category": BeliefCategory.WORLD} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "No Gossip"}, "a boundary's name is 1 to 60"),
        ({"patterns": []}, "needs a pattern or an example"),
        ({"patterns": ["gossip", " * "]}, "a boundary's pattern needs a text"),
        (
            {"patterns": ["gossip" + "*" * 100]},
            "a boundary's pattern must have at most 100 characters, got 106",
        ),
        ({"examples": [" " * 300 + "x"]}, "a boundary's example must have at most 300 characters, got 301"),
        ({"examples": ["x"] * 21}, "at most 20 examples, got 21"),
    ],
)
def test_an_invalid_boundary_is_refused_with_the_reason(changes: dict[str, Any], message: str) -> None:
    valid = {"name": "no_gossip", "type": BoundaryType.ETHICAL, "response": BoundaryResponse.FLAG}
    with pytest.raises(Invalid, match=message):
        NewBoundary(**(valid | {"patterns": ["gossip*"]} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statement": " "}, "needs a text"),
        ({"statement": "x" * (TEXT_LENGTH + 1)}, "at most 1,000 characters, got 1,001"),
        ({"statement": "a\0b"}, "NUL"),
        ({"statement": "\ud800"}, "half a surrogate pair"),
        ({"confidence": math.nan}, "confidence must be a number from 0 to 1"),
        ({"confidence": 10**400}, "confidence must be a number from 0 to 1"),
        ({"confidence": 1.1}, "confidence must be a number from 0 to 1"),
        ({"stability": -0.1}, "stability must be a number from 0 to 1"),
        ({"stability": math.inf}, "stability must be a number from 0 to 1"),
        ({"source": "x" * 201}, "source must have at most 200"),
    ],
)
def test_an_invalid_belief_is_refused_with_the_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        belief(**changes)


@pytest.mark.parametrize(
    ("changes", "message"), [({"content": ""}, "needs a text"), ({"stability": 2}, "0 to 1")]
)
def test_an_invalid_aspect_is_refused_with_the_reason(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        NewAspect(**({"content": "A scout.", "kind": AspectKind.SELF_CONCEPT} | changes))


@pytest.mark.parametrize(
    ("key", "value"),
    [("", "v"), ("k\n", "v\nw"), ("k" * 61, "v"), ("k", ""), ("k", "v" * 301), ("k", "a\0"), ("k'; --", "v")],
)
def test_an_invalid_preference_is_refused(key: str, value: str) -> None:
    with pytest.raises(Invalid):
        check_preference(key, value)


def test_the_key_of_a_preference_is_lower_cased() -> None:
    assert check_preference(" Tone of Voice ", " short ") == ("tone of voice", "short")
