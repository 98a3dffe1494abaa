"""The private keys with which agents sign, opened and built once per process."""

from __future__ import annotations

from functools import lru_cache

from apps.tenants.encoding import from_json
from apps.tenants.keys import master_keys
from arbor.agents.identity import open_private_key
from arbor.agents.keys import KeyPurpose, SigningKey, slot_of
from arbor.sealing import SealedRecord

#: Built keys of a process, under 1 KB each.
_KEYS_CACHED = 4096


@lru_cache(maxsize=_KEYS_CACHED)
def signing_key(sealed: str, *, public_id: str, tenant_id: str, number: int) -> SigningKey:
    """Open and build a signing key from its sealed record in JSON text. Raises SealBroken."""
    private = open_private_key(
        SealedRecord.from_json(from_json(sealed)),
        keys=master_keys(),
        agent_public_id=public_id,
        tenant_id=tenant_id,
        slot=slot_of(KeyPurpose.SIGNING, number),
    )
    return SigningKey.build(private, public_id=public_id, number=number)
