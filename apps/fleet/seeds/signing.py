"""Sign seeds by an agent's key and the System Authority, and verify those of this and of other installations."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from apps.agents.models import Agent, AgentKey
from apps.tenants.keys import master_keys
from arbor.agents.identity import KeyPair, PrivateKey, open_private_key
from arbor.errors import SeedInvalid
from arbor.sealing import SealedRecord, derive_secret
from arbor.seeds.manifest import ChainLink, SeedManifest, SeedSignatures
from arbor.seeds.signing import SeedSigner, is_own, signature_of, verify_signatures

_AUTHORITY_PURPOSE = "seed-authority"


def seed_signer(agent: Agent) -> SeedSigner:
    """Return the signer of an agent's seeds. Raises SeedInvalid for an agent without a key, and SealBroken."""
    key = AgentKey.objects.filter(agent_id=agent.id).first()
    if key is None:
        raise SeedInvalid(f"{agent.name} has no key to sign its seed with; `arbor doctor` finds such agents")
    private = open_private_key(
        SealedRecord.from_json(key.sealed_private_key),
        keys=master_keys(),
        agent_public_id=agent.public_id,
        tenant_id=str(agent.tenant_id),
    )
    pair = KeyPair(public=bytes(key.public_key), private=private)
    authority = _authority(master_keys().current)

    def sign(signed: bytes, /) -> SeedSignatures:
        return SeedSignatures(
            keys=(ChainLink(number=1, public_key=pair.public.hex()),),
            agent=signature_of(signed, pair, number=1),
            authority=signature_of(signed, authority, number=1),
        )

    return sign


def verify_seed_signatures(manifest: SeedManifest) -> bool:
    """Check the signatures of a seed, and return whether this installation made it. Raises SeedInvalid."""
    verify_signatures(manifest, link_bytes=_no_link)
    return is_own(manifest, [_authority(key).public for key in master_keys().opening])


def _no_link(_agent: str, number: int, _public_key: bytes) -> bytes:
    raise SeedInvalid(f"key {number} of the seed's agent cannot be verified")


def _authority(master_key: bytes) -> KeyPair:
    raw = derive_secret(master_key, _AUTHORITY_PURPOSE)
    public = Ed25519PrivateKey.from_private_bytes(raw).public_key().public_bytes_raw()
    return KeyPair(public=public, private=PrivateKey(raw=raw))
