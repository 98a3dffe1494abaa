"""A guarded model: retries, circuit breaker and deadline."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from arbor.errors import ModelRejected, ModelTimeout, ModelUnavailable
from arbor.models.breaker import Breaker, BreakerState
from arbor.models.ports import ModelReply, ModelRequest, ScriptedModel, ScriptedStream, ScriptLine, TextSink
from arbor.models.retry import GuardedModel, RetryPolicy
from tests.unit.models.test_ports import a_request


@dataclass
class Time:
    """A clock that sleeping, or a test, moves on."""

    at: float = 0.0
    waits: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.at += seconds


def guarded_model(
    time: Time, *script: ScriptLine, breaker: Breaker | None = None
) -> tuple[GuardedModel, ScriptedModel]:
    inner = ScriptedModel(*script, handle="openai/test")
    model = GuardedModel(
        inner,
        breaker=breaker or Breaker("openai", now=time.now),
        policy=RetryPolicy(attempts=3),
        sleep=time.sleep,
        now=time.now,
        roll=lambda: 1.0,
    )
    return model, inner


def test_a_retried_reply_counts_its_attempts_and_waits() -> None:
    time = Time()
    model, _ = guarded_model(time, ModelUnavailable(), ModelUnavailable(retry_after_s=2.0), "fine")

    reply = model.complete(a_request(), deadline_s=60)

    assert (reply.text, reply.attempts) == ("fine", 3)
    assert time.waits == [0.5, 2.2]
    assert reply.latency_ms == pytest.approx(2700)


def test_the_last_failure_is_raised_with_the_number_of_attempts() -> None:
    model, _ = guarded_model(Time(), *[ModelUnavailable(f"down {n}") for n in range(9)])

    with pytest.raises(ModelUnavailable, match="down 2") as failure:
        model.complete(a_request(), deadline_s=60)

    assert failure.value.attempts == 3


def test_a_rejection_is_not_tried_again() -> None:
    model, inner = guarded_model(Time(), ModelRejected("wrong key"), "fine")

    with pytest.raises(ModelRejected, match="wrong key"):
        model.complete(a_request(), deadline_s=60)

    assert len(inner.requests) == 1


def test_retry_after_beyond_the_deadline_ends_the_call_at_once() -> None:
    time = Time()
    model, _ = guarded_model(time, ModelUnavailable(retry_after_s=600), "fine")

    with pytest.raises(ModelUnavailable):
        model.complete(a_request(), deadline_s=60)

    assert time.waits == []


def test_each_attempt_gets_the_rest_of_the_deadline() -> None:
    time = Time()
    deadlines: list[float] = []

    class Slow:
        handle = "openai/slow"

        def complete(
            self, request: ModelRequest, *, deadline_s: float, on_text: TextSink | None = None
        ) -> ModelReply:
            deadlines.append(deadline_s)
            time.at += 10
            raise ModelUnavailable

    model = GuardedModel(
        Slow(),
        breaker=Breaker("openai"),
        policy=RetryPolicy(),
        sleep=time.sleep,
        now=time.now,
        roll=lambda: 1.0,
    )
    with pytest.raises(ModelUnavailable):
        model.complete(a_request(), deadline_s=25)

    assert deadlines == [25, 14.5, 3.5]


def test_a_passed_deadline_causes_no_call_and_no_fault() -> None:
    time = Time()
    breaker = Breaker("openai", now=time.now)
    model, inner = guarded_model(time, "fine", breaker=breaker)

    for _ in range(5):
        with pytest.raises(ModelTimeout, match="was not asked") as failure:
            model.complete(a_request(), deadline_s=0)
        assert failure.value.attempts == 0

    assert inner.requests == []
    assert breaker.state is BreakerState.CLOSED


def test_three_failed_calls_open_the_breaker_for_a_minute() -> None:
    time = Time()
    model, inner = guarded_model(time, *[ModelUnavailable() for _ in range(9)], "fine")
    for _ in range(3):
        with pytest.raises(ModelUnavailable):
            model.complete(a_request(), deadline_s=60)

    with pytest.raises(ModelUnavailable, match="is not called"):
        model.complete(a_request(), deadline_s=60)
    assert len(inner.requests) == 9

    time.at += 60
    assert model.complete(a_request(), deadline_s=60).text == "fine"


def test_a_stream_that_breaks_before_its_first_piece_is_retried() -> None:
    broken = ScriptedStream(pieces=[], error=ModelUnavailable("cut"))
    model, _ = guarded_model(Time(), broken, ScriptedStream(pieces=["fine", "."]))
    pieces: list[str] = []

    reply = model.complete(a_request(), deadline_s=60, on_text=pieces.append)

    assert (reply.text, reply.attempts, pieces) == ("fine.", 2, ["fine", "."])


def test_a_stream_that_breaks_after_its_first_piece_is_not_retried() -> None:
    broken = ScriptedStream(pieces=["Good "], error=ModelUnavailable("cut"))
    model, _ = guarded_model(Time(), broken, "never asked")
    pieces: list[str] = []

    with pytest.raises(ModelUnavailable, match="cut"):
        model.complete(a_request(), deadline_s=60, on_text=pieces.append)

    assert pieces == ["Good "]


def test_broken_streams_open_the_breaker() -> None:
    broken = [ScriptedStream(pieces=["Good "], error=ModelUnavailable("cut")) for _ in range(3)]
    model, _ = guarded_model(Time(), *broken)

    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="cut"):
            model.complete(a_request(), deadline_s=60, on_text=lambda _: None)
    with pytest.raises(ModelUnavailable, match="3 times in a row"):
        model.complete(a_request(), deadline_s=60, on_text=lambda _: None)
