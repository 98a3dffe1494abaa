"""How often an intent is tried, and where it may go."""

from __future__ import annotations

from itertools import product

import pytest

from arbor.errors import TransitionIllegal
from arbor.goals.intents import IntentStatus, after_failure, move_intent

P, L, C, F, X = (
    IntentStatus.PENDING,
    IntentStatus.LOCKED,
    IntentStatus.COMPLETED,
    IntentStatus.FAILED,
    IntentStatus.ABANDONED,
)
LEGAL = {(P, L), (P, X), (L, P), (L, C), (L, F), (L, X)}


@pytest.mark.parametrize(("status", "to"), list(product(IntentStatus, IntentStatus)))
def test_an_intent_moves_only_as_told(status: IntentStatus, to: IntentStatus) -> None:
    if (status, to) in LEGAL:
        assert move_intent(status, to) is to
    else:
        with pytest.raises(TransitionIllegal, match=f"an intent that is {status} can become"):
            move_intent(status, to)


@pytest.mark.parametrize(
    ("attempts", "final", "expected"),
    [(1, False, P), (2, False, P), (3, False, X), (4, False, X), (1, True, F), (3, True, F)],
)
def test_an_intent_is_tried_three_times_unless_it_cannot_work(
    attempts: int, final: bool, expected: IntentStatus
) -> None:
    assert after_failure(attempts, final=final) is expected
