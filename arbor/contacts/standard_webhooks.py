"""Sign requests by the Standard Webhooks specification, for which receivers have libraries in many languages.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

_SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 (what a secret begins with, not one)
#: The names of the headers.
STANDARD_ID, STANDARD_TIME, STANDARD_SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
#: A webhook whose requests have failed for this time is paused.
PAUSED_AFTER = timedelta(days=1)
_FIRST_WAIT, _MAX_WAIT = timedelta(seconds=10), timedelta(hours=1)
#: More doublings than this exceed the longest wait.
_MAX_DOUBLINGS = 10


@dataclass(frozen=True, kw_only=True)
class WebhookDecision:
    """The decision about a webhook after a failed request: pause it, or wait and send the same request again."""

    paused: bool
    wait: timedelta


def new_standard_secret() -> str:
    """Generate a secret: `whsec_` and 32 random bytes in base64, as the libraries of receivers expect it."""
    return SECRET_PREFIX + base64.b64encode(os.urandom(_SECRET_BYTES)).decode()


def signed_headers(*secrets: str, message_id: str, at: int, body: bytes) -> dict[str, str]:
    """Build the headers of a request: its id, the time in Unix seconds, and by each secret a signature of both and the body."""
    signed = f"{message_id}.{at}.".encode() + body
    return {
        STANDARD_ID: message_id,
        STANDARD_TIME: str(at),
        STANDARD_SIGNATURE: " ".join(_signature(secret, signed) for secret in secrets),
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return f"v1,{base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()}"


def signals_body(signals: Sequence[Mapping[str, Any]]) -> bytes:
    """Build the body of a request with signals, one or more; the same signals give the same bytes."""
    body = {"type": "signals", "timestamp": signals[-1]["at"], "data": {"signals": list(signals)}}
    # A lone surrogate in a text must not break the request.
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", errors="replace")


def decide_request_retry(*, failures: int, failing_for: timedelta, final: bool) -> WebhookDecision:
    """Decide about a webhook after `failures` failed requests in a row (1 or more); a `final` failure pauses it at once."""
    wait = min(_FIRST_WAIT * 2 ** min(failures - 1, _MAX_DOUBLINGS), _MAX_WAIT)
    return WebhookDecision(paused=final or failing_for >= PAUSED_AFTER, wait=wait)
