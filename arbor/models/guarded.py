"""Retry a model's calls behind its provider's breaker, within one deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

from arbor.errors import ModelError, ModelTimeout
from arbor.models.breaker import Breaker
from arbor.models.ports import Model, ModelReply, ModelRequest, TextSink
from arbor.models.retry import RetryPolicy, decide_retry


class _CountedSink:
    """Passes the pieces of a text on, and counts them."""

    def __init__(self, on_text: TextSink) -> None:
        self.pieces = 0
        self._on_text = on_text

    def __call__(self, piece: str) -> None:
        self.pieces += 1
        self._on_text(piece)


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

    def complete(
        self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
    ) -> ModelReply:
        """Answer the request; the error that ends the attempts contains their number.

        A stream that breaks after its first piece of text is not retried: the piece may be shown already.
        """
        if deadline_s <= 0:
            raise ModelTimeout(f"{self.handle} was not asked: the deadline passed {-deadline_s:.1f} s ago")
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
