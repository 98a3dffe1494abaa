"""Signatures by the Standard Webhooks specification, and the waits after failed requests."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from arbor.contacts.standard_webhooks import (
    decide_request_retry,
    new_standard_secret,
    signals_body,
    signed_headers,
)


def test_a_signature_is_that_of_the_libraries() -> None:
    # The example of the reference libraries.
    headers = signed_headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=1614265330,
        body=b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_secret_has_32_random_bytes() -> None:
    secret, other = new_standard_secret(), new_standard_secret()
    assert secret != other
    assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32


def test_the_same_signals_give_the_same_body() -> None:
    signals = [{"id": "1", "at": "2026-01-01T00:00:00+00:00", "data": {"name": "Vega \ud800"}}]
    assert signals_body(signals) == signals_body(list(signals))
    assert b'"type":"signals","timestamp":"2026-01-01T00:00:00+00:00"' in signals_body(signals)


@pytest.mark.parametrize(
    ("failures", "hours", "final", "seconds", "paused"),
    [
        (1, 0, False, 10, False),
        (2, 0, False, 20, False),
        (9, 1, False, 2560, False),
        (10, 23.9, False, 3600, False),
        (5000, 24, False, 3600, True),
        (1, 0, True, 10, True),
    ],
)
def test_a_webhook_waits_longer_and_is_paused_after_a_day(
    failures: int, hours: float, final: bool, seconds: int, paused: bool
) -> None:
    decision = decide_request_retry(failures=failures, failing_for=timedelta(hours=hours), final=final)
    assert (decision.wait.total_seconds(), decision.paused) == (seconds, paused)
