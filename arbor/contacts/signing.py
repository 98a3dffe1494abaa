"""Sign the requests of webhook channels, so that receivers can verify sender and time.

Requests with signals are signed by Standard Webhooks instead (`arbor.contacts.standard_webhooks`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from arbor.contacts.standard_webhooks import SECRET_PREFIX
from arbor.sealing import MasterKeys, OpenedSecret, SealedRecord, seal, unseal

#: The header of the signature: `t=SECONDS,v1=HEX`.
SIGNATURE_HEADER = "Arbor-Signature"
_SECRET_BYTES = 32
# A label is part of the derivation: changing it makes every secret sealed under it unreadable.
_SEAL_PURPOSE = "webhook-secret"


def new_secret() -> str:
    """Generate a webhook's secret: `whsec_` and 43 characters."""
    return SECRET_PREFIX + base64.urlsafe_b64encode(os.urandom(_SECRET_BYTES)).decode().rstrip("=")


def signature(secret: bytes, *, at: int, body: bytes) -> str:
    """Build the signature header: HMAC-SHA256 under the secret over `t`, a full stop and the body; `at` in Unix seconds."""
    mac = hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def seal_secret(secret: str, *, keys: MasterKeys, tenant_id: UUID, row_id: UUID) -> dict[str, Any]:
    """Encrypt a secret so that only the current master key opens it, and only for this row: a channel, hook or webhook."""
    bound = _bound_data(tenant_id, row_id)
    return seal(secret.encode(), keys=keys, purpose=_SEAL_PURPOSE, bound=bound).to_json()


def open_secret(sealed: Mapping[str, Any], *, keys: MasterKeys, tenant_id: UUID, row_id: UUID) -> bytes:
    """Decrypt a sealed secret. Raises SealBroken for another key, row or tenant, and for a record that is damaged."""
    return unseal_secret(sealed, keys=keys, tenant_id=tenant_id, row_id=row_id).raw


def unseal_secret(
    sealed: Mapping[str, Any], *, keys: MasterKeys, tenant_id: UUID, row_id: UUID
) -> OpenedSecret:
    """Decrypt a sealed secret, and find the master key that it is sealed under. Raises SealBroken."""
    return unseal(
        SealedRecord.from_json(sealed),
        keys=keys,
        purpose=_SEAL_PURPOSE,
        bound=_bound_data(tenant_id, row_id),
        subject=f"the sealed secret of channel, hook or webhook {row_id}",
    )


def _bound_data(tenant_id: UUID, row_id: UUID) -> bytes:
    # Both have sixteen bytes, so no two pairs give the same bytes.
    return tenant_id.bytes + row_id.bytes
