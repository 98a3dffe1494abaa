"""Sign the requests of webhook channels, so that receivers can verify sender and time.

Requests with signals are signed by Standard Webhooks instead (`arbor.contacts.standard_webhooks`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from arbor.contacts.standard_webhooks import SECRET_PREFIX
from arbor.sealing import RowSecrets

#: The header of the signature: `t=SECONDS,v1=HEX`.
SIGNATURE_HEADER = "Arbor-Signature"
_SECRET_BYTES = 32
#: The secrets of channels, hooks and webhooks.
SIGNING_SECRETS = RowSecrets(purpose="webhook-secret", row="channel, hook or webhook")


def new_secret() -> str:
    """Generate a webhook's secret: `whsec_` and 43 characters."""
    return SECRET_PREFIX + base64.urlsafe_b64encode(os.urandom(_SECRET_BYTES)).decode().rstrip("=")


def signature(secret: bytes, *, at: int, body: bytes) -> str:
    """Build the signature header: HMAC-SHA256 under the secret over `t`, a full stop and the body; `at` in Unix seconds."""
    mac = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"
