"""Valid beliefs and aspects."""

from __future__ import annotations

import math
from typing import Any

import pytest

from arbor.errors import Invalid
from arbor.selves.values import TEXT_LENGTH, AspectKind, BeliefCategory, NewAspect, NewBelief


def belief(**changes: Any) -> NewBelief:
    return NewBelief(**({"statement": "Ice holds after a week.", "category": BeliefCategory.WORLD} | changes))


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
