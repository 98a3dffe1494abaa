"""The circuit breaker of a provider."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from arbor.errors import ModelError, ModelRefused, ModelRejected, ModelTimeout, ModelUnavailable
from arbor.models.breaker import Breaker, Breakers, BreakerState, BreakerVerdict, verdict_of


class Seconds:
    """A clock in seconds that is moved by hand."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def breaker(seconds: Seconds) -> Breaker:
    return Breaker("openai", now=seconds)


def call(breaker: Breaker, error: BaseException | None = None) -> None:
    """Run a call that succeeds, or ends with `error`, which is suppressed here."""
    try:
        with breaker.guard():
            if error is not None:
                raise error
    except BaseException as exc:
        if exc is not error:
            raise


def open_breaker(breaker: Breaker) -> None:
    """Open the breaker by three failed calls."""
    for _ in range(3):
        call(breaker, ModelUnavailable())
    assert breaker.state is BreakerState.OPEN


def test_three_consecutive_failures_open_the_breaker_for_a_minute(breaker: Breaker, seconds: Seconds) -> None:
    open_breaker(breaker)
    seconds.at += 20

    with pytest.raises(ModelUnavailable, match="openai failed 3 times in a row and is not called") as refusal:
        call(breaker)

    assert refusal.value.retry_after_s == 40
    assert refusal.value.attempts == 0
    assert not refusal.value.provider_fault


def test_a_success_between_failures_resets_their_count(breaker: Breaker) -> None:
    for error in [ModelUnavailable(), ModelTimeout(), None, ModelUnavailable(), ModelUnavailable()]:
        call(breaker, error)

    assert breaker.state is BreakerState.CLOSED


@pytest.mark.parametrize(
    "error",
    [
        ModelRejected(),
        ModelRefused(),
        ModelUnavailable(provider_fault=False),
        ValueError(),
        KeyboardInterrupt(),
    ],
)
def test_errors_that_the_provider_did_not_cause_do_not_count(breaker: Breaker, error: BaseException) -> None:
    for _ in range(10):
        call(breaker, error)

    assert breaker.state is BreakerState.CLOSED


def test_a_slow_server_that_takes_too_long_is_still_called(seconds: Seconds) -> None:
    breaker = Breakers(now=seconds).of("llamacpp", is_slow=True)
    for _ in range(10):
        call(breaker, ModelTimeout())
    assert breaker.state is BreakerState.CLOSED

    # A slow server that is down is not called.
    open_breaker(breaker)


def test_a_rate_limit_does_not_reset_the_count_of_failures(breaker: Breaker) -> None:
    limited = ModelUnavailable(provider_fault=False)
    for error in [ModelUnavailable(), limited, ModelUnavailable(), limited, ModelUnavailable()]:
        call(breaker, error)

    assert breaker.state is BreakerState.OPEN


def test_a_successful_trial_after_the_cool_down_closes_the_breaker(
    breaker: Breaker, seconds: Seconds
) -> None:
    open_breaker(breaker)
    seconds.at += 60

    with breaker.guard():
        during = breaker.state
        with pytest.raises(ModelUnavailable, match="is tried with one other call first"):
            call(breaker)

    assert (during, breaker.state) == (BreakerState.HALF_OPEN, BreakerState.CLOSED)


def test_a_failed_trial_opens_the_breaker_for_another_minute(breaker: Breaker, seconds: Seconds) -> None:
    open_breaker(breaker)
    seconds.at += 60
    call(breaker, ModelTimeout())
    seconds.at += 59

    with pytest.raises(ModelUnavailable, match=r"is not called for 1 s$"):
        call(breaker)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ModelUnavailable(provider_fault=False)])
def test_an_inconclusive_trial_is_repeated_by_the_next_call(
    breaker: Breaker, seconds: Seconds, error: BaseException
) -> None:
    open_breaker(breaker)
    seconds.at += 60
    call(breaker, error)

    call(breaker)

    assert breaker.state is BreakerState.CLOSED


def test_a_late_failure_of_an_old_call_is_ignored(breaker: Breaker, seconds: Seconds) -> None:
    old = breaker.guard()
    old.__enter__()
    open_breaker(breaker)
    seconds.at += 60
    call(breaker)

    old.__exit__(ModelTimeout, ModelTimeout(), None)
    call(breaker, ModelUnavailable())
    call(breaker, ModelUnavailable())

    assert breaker.state is BreakerState.CLOSED


def test_exactly_one_of_many_threads_makes_the_trial(breaker: Breaker, seconds: Seconds) -> None:
    open_breaker(breaker)
    seconds.at += 60
    at_once, all_asked = threading.Barrier(200), threading.Barrier(200)
    admitted: list[int] = []

    def ask() -> None:
        at_once.wait()
        try:
            with breaker.guard():
                admitted.append(1)
                all_asked.wait()
        except ModelUnavailable:
            all_asked.wait()

    threads = [threading.Thread(target=ask) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(admitted) == 1
    assert breaker.state is BreakerState.CLOSED


def test_each_provider_has_its_own_breaker(seconds: Seconds) -> None:
    breakers = Breakers(now=seconds)
    open_breaker(breakers.of("openai"))
    call(breakers.of("anthropic"))

    assert breakers.of("openai").state is BreakerState.OPEN
    assert breakers.of("anthropic").state is BreakerState.CLOSED


@pytest.mark.parametrize(
    ("make", "verdict"),
    [
        (lambda: None, BreakerVerdict.ANSWERED),
        (ModelUnavailable, BreakerVerdict.FAULT),
        (ModelTimeout, BreakerVerdict.FAULT),
        (ModelRejected, BreakerVerdict.ANSWERED),
        (ModelError, BreakerVerdict.ANSWERED),
        (KeyError, BreakerVerdict.NO_EVIDENCE),
    ],
)
def test_each_ending_counts_as_its_verdict(
    make: Callable[[], BaseException | None], verdict: BreakerVerdict
) -> None:
    assert verdict_of(make()) is verdict
