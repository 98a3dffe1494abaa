"""Limits of uses a minute: refused, charged and forgotten."""

from __future__ import annotations

import pytest

from arbor import rate_limits
from arbor.rate_limits import RateLimiter


def test_a_limit_of_zero_is_no_limit() -> None:
    assert RateLimiter(lambda: 0.0).seconds_to_wait({"anybody": 0}, uses=1_000) == 0


def test_a_refused_use_is_charged_to_nobody() -> None:
    time = [0.0]
    limiter = RateLimiter(lambda: time[0])
    limiter.seconds_to_wait({"ann": 1})
    assert limiter.seconds_to_wait({"ann": 1, "acme": 2}) == 60
    assert limiter.seconds_to_wait({"acme": 2}, uses=2) == 0


def test_a_use_above_the_limit_itself_is_allowed_once() -> None:
    limiter = RateLimiter(lambda: 0.0)
    assert limiter.seconds_to_wait({"ann": 2}, uses=5) == 0
    assert limiter.seconds_to_wait({"ann": 2}, uses=5) > 0


def test_unused_keys_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "_MAX_KEYS", 2)
    time = [0.0]
    limiter = RateLimiter(lambda: time[0])
    for key in ("ann", "bob"):
        limiter.seconds_to_wait({key: 5})
    time[0] = 61.0
    limiter.seconds_to_wait({"cy": 5})
    assert limiter._allowances.keys() == {"cy"}
