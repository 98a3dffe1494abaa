"""Decide whether and when a failed call is retried, and retry it behind its provider's breaker, within one deadline."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from arbor.errors import ModelError, ModelTimeout, ModelUnavailable
from arbor.models.breaker import Breaker
from arbor.models.ports import Model, ModelReply, ModelRequest, TextSink


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """The limits of retries."""

    #: The most attempts, the first one included.
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
        return _give_up(f"attempt {attempt} was the last of {policy.attempts}")
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
        seconds = float(text)
        return seconds if math.isfinite(seconds) else None
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


class _CountedSink:
    """Passes the pieces of a text on, and counts them."""

    def __init__(self, on_text: TextSink) -> None:
        self.pieces = 0
        self._on_text = on_text

    def __call__(self, piece: str) -> None:
        self.pieces += 1
        self._on_text(piece)


class GuardedModel:
    """Retries a model that makes one attempt for each call, behind the breaker of its provider.

    The breaker counts whole calls, not attempts: one prompt that a provider cannot process must not block the provider for
    all other agents.
    """

    def __init__(
        self,
        model: Model,
        *,
        breaker: Breaker,
        policy: RetryPolicy,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._breaker = breaker
        self._policy = policy
        self._sleep = sleep
        self._now = now
        self._roll = roll

    @property
    def handle(self) -> str:
        """Return the handle of the wrapped model."""
        return self._model.handle

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        """Answer the request; the error that ends the attempts contains their number.

        A stream that breaks after its first piece of text is not retried: the piece may be shown already.
        """
        if deadline_s <= 0:
            refusal = ModelTimeout(
                f"{self.handle} was not asked: the deadline passed {-deadline_s:.1f} s ago"
            )
            refusal.attempts = 0
            raise refusal
        started = self._now()
        attempt = 0
        sink = None if on_text is None else _CountedSink(on_text)
        with self._breaker.guard():
            while True:
                remaining_s = started + deadline_s - self._now()
                attempt += 1
                try:
                    reply = self._model.complete(request, deadline_s=remaining_s, on_text=sink)
                except ModelError as error:
                    error.attempts = attempt
                    decision = decide_retry(
                        error,
                        attempt=attempt,
                        remaining_s=started + deadline_s - self._now(),
                        roll=self._roll(),
                        policy=self._policy,
                    )
                    if not decision.again or (sink is not None and sink.pieces):
                        raise
                    self._sleep(decision.wait_s)
                else:
                    latency_ms = (self._now() - started) * 1000
                    return replace(reply, attempts=attempt, latency_ms=latency_ms)
