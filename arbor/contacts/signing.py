"""Sign webhook requests, so that receivers can verify sender and time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from arbor.agents.identity import IV_BYTES, TAG_BYTES, SealedKey, derive_secret
from arbor.errors import SealBroken

#: The header of the signature: `t=SECONDS,v1=HEX`.
SIGNATURE_HEADER = "Arbor-Signature"
_SECRET_BYTES = 32
_SECRET_PREFIX = "whsec_"  # noqa: S105 (what a secret begins with, not one)
# A label is part of the derivation: changing it makes every secret sealed under it unreadable.
_SEAL_PURPOSE = "webhook-secret"
_SEAL_VERSION = 1


def new_secret() -> str:
    """Generate a webhook's secret: `whsec_` and 43 characters."""
    return _SECRET_PREFIX + base64.urlsafe_b64encode(os.urandom(_SECRET_BYTES)).decode().rstrip("=")


def signature(secret: bytes, *, at: int, body: bytes) -> str:
    """Build the signature header: HMAC-SHA256 under the secret over `t`, a full stop and the body; `at` in Unix seconds."""
    mac = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def seal_secret(secret: str, *, master_key: bytes, tenant_id: UUID, channel_id: UUID) -> dict[str, Any]:
    """Encrypt a secret so that only this master key opens it, and only for this channel of this tenant."""
    iv = os.urandom(IV_BYTES)
    cipher = AESGCM(derive_secret(master_key, _SEAL_PURPOSE))
    sealed = cipher.encrypt(iv, secret.encode(), _associated_data(tenant_id, channel_id))
    record = SealedKey(v=_SEAL_VERSION, ct=sealed[:-TAG_BYTES], iv=iv, tag=sealed[-TAG_BYTES:])
    return dict(record.to_json())


def open_secret(sealed: Mapping[str, Any], *, master_key: bytes, tenant_id: UUID, channel_id: UUID) -> bytes:
    """Decrypt a sealed secret. Raises SealBroken for another key, channel or tenant, and for a record that is damaged."""
    record = SealedKey.from_json(sealed)
    cipher = AESGCM(derive_secret(master_key, _SEAL_PURPOSE))
    try:
        return cipher.decrypt(record.iv, record.ct + record.tag, _associated_data(tenant_id, channel_id))
    except InvalidTag as exc:
        raise SealBroken(
            f"the sealed secret of channel {channel_id} does not open; is ARBOR_MASTER_KEY the one it was made under?"
        ) from exc


def _associated_data(tenant_id: UUID, channel_id: UUID) -> bytes:
    # Both have sixteen bytes, so no two pairs give the same bytes.
    return tenant_id.bytes + channel_id.bytes
