"""Retry a model's calls behind its provider's breaker, within one deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from arbor.errors import ModelError, ModelTimeout
from arbor.models.breaker import Breaker
from arbor.models.ports import Model, ModelReply, ModelRequest
from arbor.models.retry import RetryPolicy, decide_retry


class GuardedModel:
    """Wraps a model that makes one attempt.

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
        """The handle of the wrapped model."""
        return self._model.handle

    def complete(self, request: ModelRequest, *, deadline_s: float) -> ModelReply:
        """Answer the request; the error that ends the attempts contains their number."""
        if deadline_s <= 0:
            raise ModelTimeout(f"{self.handle} was not asked: the deadline passed {-deadline_s:.1f} s ago")
        started = self._now()
        attempt = 0
        with self._breaker.guard():
            while True:
                remaining_s = started + deadline_s - self._now()
                attempt += 1
                try:
                    reply = self._model.complete(request, deadline_s=remaining_s)
                except ModelError as error:
                    error.attempts = attempt
                    decision = decide_retry(
                        error,
                        attempt=attempt,
                        remaining_s=started + deadline_s - self._now(),
                        roll=self._roll(),
                        policy=self._policy,
                    )
                    if not decision.again:
                        raise
                    self._sleep(decision.wait_s)
                else:
                    latency_ms = (self._now() - started) * 1000
                    return replace(reply, attempts=attempt, latency_ms=latency_ms)
