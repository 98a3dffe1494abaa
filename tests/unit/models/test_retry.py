"""Decisions to retry a failed model call, and the Retry-After header."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelTimeout, ModelUnavailable
from arbor.models.retry import RetryDecision, RetryPolicy, decide_retry, parse_retry_after

POLICY = RetryPolicy(attempts=4, first_wait_s=0.5, longest_wait_s=20.0, shortest_call_s=1.0)


def decide(
    error: ModelError, *, attempt: int = 1, remaining_s: float = 100.0, roll: float = 1.0
) -> RetryDecision:
    return decide_retry(error, attempt=attempt, remaining_s=remaining_s, roll=roll, policy=POLICY)


@pytest.mark.parametrize(
    ("attempt", "roll", "wait_s"),
    [(1, 1.0, 0.5), (2, 1.0, 1.0), (3, 1.0, 2.0), (3, 0.25, 0.5), (1, 0.0, 0.0)],
)
def test_the_wait_doubles_and_has_full_jitter(attempt: int, roll: float, wait_s: float) -> None:
    decision = decide(ModelUnavailable(), attempt=attempt, roll=roll)

    assert decision == RetryDecision(again=True, wait_s=wait_s, reason="back-off")


def test_the_wait_is_capped() -> None:
    policy = RetryPolicy(attempts=50)

    decision = decide_retry(ModelUnavailable(), attempt=30, remaining_s=100, roll=1.0, policy=policy)

    assert decision.wait_s == policy.longest_wait_s


@pytest.mark.parametrize(("roll", "wait_s"), [(0.0, 30.0), (1.0, 33.0)])
def test_retry_after_is_a_lower_bound_of_the_wait(roll: float, wait_s: float) -> None:
    decision = decide(ModelUnavailable(retry_after_s=30.0), roll=roll)

    assert decision.again
    assert decision.wait_s == pytest.approx(wait_s)


@pytest.mark.parametrize(
    ("error", "attempt", "remaining_s", "reason"),
    [
        (ModelUnavailable(), 4, 100.0, "attempt 4 was the last of 4"),
        (ModelUnavailable(), 1, 1.4, "back-off of 0.5 s does not fit in the 1.4 s left"),
        (
            ModelUnavailable(retry_after_s=120.0),
            1,
            100.0,
            "Retry-After of 132.0 s does not fit in the 100.0 s left",
        ),
        (ModelUnavailable(), 1, -3.0, "does not fit in the 0.0 s left"),
        (ModelTimeout(), 1, 100.0, "a retry does not help after ModelTimeout"),
        (ModelRefused(), 1, 100.0, "a retry does not help after ModelRefused"),
        (ModelRejected(), 1, 100.0, "a retry does not help after ModelRejected"),
    ],
)
def test_a_decision_not_to_retry_gives_its_reason(
    error: ModelError, attempt: int, remaining_s: float, reason: str
) -> None:
    decision = decide(error, attempt=attempt, remaining_s=remaining_s)

    assert not decision.again
    assert reason in decision.reason


NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("Sat, 21 Nov 2026 12:00:30 GMT", 30.0),
        ("Sat, 21 Nov 2026 12:00:30 -0000", 30.0),
        ("Sat, 21 Nov 2026 11:00:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("٣", None),
    ],
)
def test_retry_after_is_parsed_as_seconds_or_as_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, now=NOW) == seconds
