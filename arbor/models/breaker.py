"""A circuit breaker per provider: opens after failures in a row, then permits one trial call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from arbor.errors import ModelError, ModelTimeout, ModelUnavailable
from arbor.quotations import counted

#: Failures in a row that open the breaker, and seconds until the trial (the origin of seed 000).
FAILURES_TO_OPEN = 3
COOL_DOWN_S = 60.0


class BreakerState(StrEnum):
    """The state of a breaker."""

    #: Calls pass.
    CLOSED = "closed"
    #: Calls are refused until the cool-down is over.
    OPEN = "open"
    #: One call, the trial, is on its way; others are refused.
    HALF_OPEN = "half_open"


class BreakerVerdict(StrEnum):
    """The result of a call, as evidence about its provider."""

    #: The provider works, even when it refused the request.
    ANSWERED = "answered"
    #: The provider failed or did not answer.
    FAULT = "fault"
    #: The call proves nothing: a rate limit, Arbor's own full pool, or a call that the caller ended.
    NO_EVIDENCE = "no_evidence"


def verdict_of(error: BaseException | None, *, is_slow: bool = False) -> BreakerVerdict:
    """Return the verdict of a finished call; only faults of the provider count against the provider.

    A slow server may still compute at the deadline, so a time-out there is no evidence for a fault.
    """
    match error:
        case None:
            return BreakerVerdict.ANSWERED
        case ModelTimeout():
            return BreakerVerdict.NO_EVIDENCE if is_slow else BreakerVerdict.FAULT
        case ModelUnavailable():
            return BreakerVerdict.FAULT if error.provider_fault else BreakerVerdict.NO_EVIDENCE
        case ModelError():
            return BreakerVerdict.ANSWERED
        case _:
            return BreakerVerdict.NO_EVIDENCE


class Breaker:
    """The breaker of one provider, shared by all threads of the process.

    `now` returns monotonic seconds. A call that began before the last change of state is no evidence
    for the new state, so its verdict is dropped.
    """

    def __init__(
        self,
        provider: str,
        *,
        now: Callable[[], float] = time.monotonic,
        failures_to_open: int = FAILURES_TO_OPEN,
        cool_down_s: float = COOL_DOWN_S,
        is_slow: bool = False,
    ) -> None:
        self.provider = provider
        self._is_slow = is_slow
        self._now = now
        self._failures_to_open = failures_to_open
        self._cool_down_s = cool_down_s
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._failures = 0
        self._opened_at = 0.0
        self._generation = 0

    @property
    def state(self) -> BreakerState:
        """Return the state as of the last call."""
        with self._lock:
            return self._state

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Permit one call and record its verdict; raises ModelUnavailable when no call may pass."""
        generation = self._admit()
        error: BaseException | None = None
        try:
            yield
        except BaseException as exc:
            error = exc
            raise
        finally:
            self._settle(generation, verdict_of(error, is_slow=self._is_slow))

    def _admit(self) -> int:
        with self._lock:
            if self._state is BreakerState.CLOSED:
                return self._generation
            left_s = self._opened_at + self._cool_down_s - self._now()
            if self._state is BreakerState.OPEN and left_s <= 0:
                self._become(BreakerState.HALF_OPEN)
                return self._generation
            failed = f"{self.provider} failed {counted(self._failures_to_open, 'time')} in a row and"
            if self._state is BreakerState.HALF_OPEN:
                reason = f"{failed} is tried with one other call first, which is under way"
            else:
                reason = f"{failed} is not called for {max(1.0, left_s):.0f} s"
        refusal = ModelUnavailable(
            reason,
            retry_after_s=max(1.0, left_s),
            provider_fault=False,
        )
        refusal.attempts = 0
        raise refusal

    def _settle(self, generation: int, verdict: BreakerVerdict) -> None:
        with self._lock:
            if generation != self._generation:
                return
            trial = self._state is BreakerState.HALF_OPEN
            if verdict is BreakerVerdict.ANSWERED:
                self._failures = 0
                if trial:
                    self._become(BreakerState.CLOSED)
            elif verdict is BreakerVerdict.FAULT:
                self._failures += 1
                if trial or self._failures >= self._failures_to_open:
                    self._opened_at = self._now()
                    self._become(BreakerState.OPEN)
            elif trial:
                # The trial gave no evidence: the next call is the trial, without a new cool-down.
                self._become(BreakerState.OPEN)

    def _become(self, state: BreakerState) -> None:
        self._state = state
        self._failures = 0
        self._generation += 1


class Breakers:
    """One breaker per provider, created on first use."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._breakers: dict[str, Breaker] = {}

    def of(self, provider: str, *, is_slow: bool = False) -> Breaker:
        """Return the one breaker of a provider; `is_slow`: a self-hosted server that computes a few replies at once."""
        with self._lock:
            if provider not in self._breakers:
                self._breakers[provider] = Breaker(provider, now=self._now, is_slow=is_slow)
            return self._breakers[provider]
