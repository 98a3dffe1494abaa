"""Decide whether and when a failed call is retried."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from arbor.errors import ModelError, ModelUnavailable


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """The limits of retries."""

    #: Attempts in all, the first one included.
    attempts: int = 3
    #: The upper limit of the random wait after the first failure, in seconds; doubled at each further one.
    first_wait_s: float = 0.5
    longest_wait_s: float = 20.0
    #: The least time to the deadline for another attempt, in seconds.
    shortest_call_s: float = 1.0


@dataclass(frozen=True, kw_only=True)
class RetryDecision:
    """Retry after `wait_s`, or give up for `reason`."""

    again: bool
    wait_s: float
    reason: str


def decide_retry(
    error: ModelError, *, attempt: int, remaining_s: float, roll: float, policy: RetryPolicy
) -> RetryDecision:
    """Decide about the failure of attempt number `attempt` (from 1), `remaining_s` before the deadline.

    `roll`, from 0 to 1, is the jitter: full jitter on an exponential wait, so that hundreds of waiting
    calls do not return together (AWS Architecture Blog, "Exponential Backoff And Jitter"). A provider's
    Retry-After is a lower bound, with up to a tenth added.
    """
    if not isinstance(error, ModelUnavailable):
        return _give_up(f"a retry does not help after {type(error).__name__}")
    if attempt >= policy.attempts:
        return _give_up(f"{attempt} of {policy.attempts} attempts are used")
    if error.retry_after_s is not None:
        wait_s, source = error.retry_after_s * (1 + 0.1 * roll), "the provider's Retry-After"
    else:
        ceiling = min(policy.longest_wait_s, policy.first_wait_s * 2 ** (attempt - 1))
        wait_s, source = ceiling * roll, "back-off"
    if wait_s + policy.shortest_call_s > remaining_s:
        return _give_up(f"{source} of {wait_s:.1f} s does not fit in the {max(0.0, remaining_s):.1f} s left")
    return RetryDecision(again=True, wait_s=wait_s, reason=source)


def _give_up(reason: str) -> RetryDecision:
    return RetryDecision(again=False, wait_s=0.0, reason=reason)


def parse_retry_after(value: str | None, *, now: datetime) -> float | None:
    """Parse a Retry-After header, seconds or an HTTP date (RFC 9110, 10.2.3); return seconds, at least 0.

    Return None for an invalid header: the back-off decides then.
    """
    if value is None:
        return None
    text = value.strip()
    if text.replace(".", "", 1).isdecimal() and text.isascii():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())
