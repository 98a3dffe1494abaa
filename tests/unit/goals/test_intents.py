"""Intents: attempts, limits and transitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from arbor.errors import TransitionIllegal
from arbor.goals.intents import (
    IntentStatus,
    carries_out,
    is_stale_lock,
    move_intent,
    status_after_failure,
    status_after_part,
    tick_limit,
)

P, L, C, F, X = (
    IntentStatus.PENDING,
    IntentStatus.LOCKED,
    IntentStatus.COMPLETED,
    IntentStatus.FAILED,
    IntentStatus.ABANDONED,
)
LEGAL = {(P, L), (P, X), (L, P), (L, C), (L, F), (L, X)}


@pytest.mark.parametrize(("status", "to"), list(product(IntentStatus, IntentStatus)))
def test_an_intent_moves_only_along_the_table(status: IntentStatus, to: IntentStatus) -> None:
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
    assert status_after_failure(attempts, final=final) is expected


@pytest.mark.parametrize(("estimated", "limit"), [(None, None), (0, 3), (1, 3), (4, 12)])
def test_a_step_may_take_three_times_its_estimate(estimated: int | None, limit: int | None) -> None:
    assert tick_limit(estimated) == limit


@pytest.mark.parametrize(
    ("attempts", "ticks", "limit", "expected"),
    [(1, 1, None, P), (1, 2, 3, P), (1, 3, 3, X), (2, 9, 3, X), (2, 99, None, P)],
)
def test_an_intent_is_abandoned_when_its_ticks_are_spent(
    attempts: int, ticks: int, limit: int | None, expected: IntentStatus
) -> None:
    assert status_after_failure(attempts, ticks_used=ticks, limit=limit) is expected


@pytest.mark.parametrize(
    ("ticks", "limit", "expected"), [(1, None, C), (1, 3, C), (1, 6, P), (2, 6, C), (3, 12, P)]
)
def test_partial_success_completes_a_step_after_its_estimate(
    ticks: int, limit: int | None, expected: IntentStatus
) -> None:
    assert status_after_part(ticks_used=ticks, limit=limit) is expected


@pytest.mark.parametrize(
    ("ago", "runs", "stale"),
    [(59, False, False), (60, False, True), (3_600, True, False), (3_600, False, True), (None, False, True)],
)
def test_a_lock_expires_a_minute_after_its_heartbeat(ago: int | None, runs: bool, stale: bool) -> None:
    now = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
    locked_at = None if ago is None else now - timedelta(seconds=ago)
    assert is_stale_lock(locked_at, now=now, holder_runs=runs) is stale


@pytest.mark.parametrize(
    ("action", "step", "expected"),
    [
        ("recall", "recall", True),
        ("rest", "rest", True),
        ("fly", "fly", True),
        # The step's own action is offered.
        ("reflect", "recall", False),
        ("rest", "recall", False),
        ("fly", "recall", False),
        # The step's own action is not offered.
        ("reflect", "inquire_deep", True),
        ("recall", "fly", True),
        ("soar", "fly", False),
        ("rest", "fly", False),
        ("observe", "fly", False),
        ("review_goals", "fly", False),
        ("reprioritize", "fly", False),
    ],
)
def test_a_step_needs_its_action_or_one_that_replaces_it(action: str, step: str, expected: bool) -> None:
    offered = {"recall", "reflect", "rest", "observe", "review_goals", "reprioritize"}
    assert carries_out(action, step, offered=offered) is expected


def test_a_substitute_by_rule_executes_an_intent_in_any_case() -> None:
    offered = {"recall", "reflect", "rest"}
    assert carries_out("reflect", "recall", offered=offered, substitutes=("reflect",))
    assert not carries_out("rest", "recall", offered=offered, substitutes=("reflect",))
