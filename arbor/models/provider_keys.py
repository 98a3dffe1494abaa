"""Seal the keys by which tenants call providers of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from arbor.sealing import MasterKeys, OpenedSecret, SealedRecord, seal, unseal

# A label is part of the derivation: changing it makes every key sealed under it unreadable.
_SEAL_PURPOSE = "provider-key"
#: The number of a key's last characters that people may see, and the least number that must stay hidden.
_SHOWN = 4
_MIN_HIDDEN = 12


def seal_provider_key(
    key: str, *, keys: MasterKeys, tenant_id: UUID, provider: str, base_url: str
) -> dict[str, Any]:
    """Encrypt a key for one provider and address of one tenant, so that no other row of the table opens it."""
    bound = _bound_data(tenant_id, provider, base_url)
    return seal(key.encode(), keys=keys, purpose=_SEAL_PURPOSE, bound=bound).to_json()


def unseal_provider_key(
    sealed: Mapping[str, Any], *, keys: MasterKeys, tenant_id: UUID, provider: str, base_url: str
) -> OpenedSecret:
    """Decrypt a sealed key. Raises SealBroken for another master key, tenant, provider or address."""
    return unseal(
        SealedRecord.from_json(sealed),
        keys=keys,
        purpose=_SEAL_PURPOSE,
        bound=_bound_data(tenant_id, provider, base_url),
        subject=f"the sealed key of {provider} of tenant {tenant_id}",
    )


def key_end(key: str) -> str:
    """Return the last characters of a key, by which people recognize it; empty for a key so short that they would reveal it."""
    return key[-_SHOWN:] if len(key) >= _SHOWN + _MIN_HIDDEN else ""


def _bound_data(tenant_id: UUID, provider: str, base_url: str) -> bytes:
    # No provider's name has a line break, so no two triples give the same bytes.
    return tenant_id.bytes + f"{provider}\n{base_url}".encode()
