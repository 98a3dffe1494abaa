"""Seal the secrets that tool servers ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from arbor.sealing import MasterKeys, OpenedSecret, SealedRecord, seal, unseal

# A label is part of the derivation: changing it makes every secret sealed under it unreadable.
_SEAL_PURPOSE = "tool-server-secret"


def seal_server_secret(secret: str, *, keys: MasterKeys, tenant_id: UUID, server_id: UUID) -> dict[str, Any]:
    """Encrypt a secret so that only the current master key opens it, and only for this server of this tenant."""
    bound = _bound_data(tenant_id, server_id)
    return seal(secret.encode(), keys=keys, purpose=_SEAL_PURPOSE, bound=bound).to_json()


def unseal_server_secret(
    sealed: Mapping[str, Any], *, keys: MasterKeys, tenant_id: UUID, server_id: UUID
) -> OpenedSecret:
    """Decrypt a sealed secret, and find the master key that it is sealed under. Raises SealBroken."""
    return unseal(
        SealedRecord.from_json(sealed),
        keys=keys,
        purpose=_SEAL_PURPOSE,
        bound=_bound_data(tenant_id, server_id),
        subject=f"the sealed secret of tool server {server_id}",
    )


def _bound_data(tenant_id: UUID, server_id: UUID) -> bytes:
    # Both have sixteen bytes, so no two pairs give the same bytes.
    return tenant_id.bytes + server_id.bytes
