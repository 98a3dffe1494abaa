"""Verify who signed a seed: its agent, by its chain of keys, and the System Authority of an installation."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Protocol

from arbor.agents.identity import KeyPair, generate_key_pair, sign, verify_hex
from arbor.agents.keys import ChainKey, KeyChain
from arbor.errors import IdentityRefused, SeedInvalid
from arbor.seeds.manifest import ChainLink, SeedManifest, SeedSignature, SeedSignatures


class SeedSigner(Protocol):
    """Signs the seeds of one agent."""

    def __call__(self, signed: bytes, /) -> SeedSignatures:
        """Return the signatures of the agent and of the System Authority."""


class FakeSeedSigner:
    """A signer with keys of its own, for tests."""

    def __init__(self, agent: KeyPair | None = None, authority: KeyPair | None = None) -> None:
        self.agent = agent or generate_key_pair()
        self.authority = authority or generate_key_pair()

    def __call__(self, signed: bytes, /) -> SeedSignatures:
        """Return signatures by both keys."""
        chain = KeyChain(
            public_id=self.agent.public_id,
            tenant_id="",
            keys=(ChainKey(number=1, public=self.agent.public),),
        )
        return SeedSignatures(
            tenant_id=chain.tenant_id,
            keys=links_of(chain),
            agent=signature_of(self.agent.public, sign(self.agent.private, signed), number=1),
            authority=signature_of(self.authority.public, sign(self.authority.private, signed), number=1),
        )


def links_of(chain: KeyChain) -> tuple[ChainLink, ...]:
    """Return the public keys of a chain."""
    return tuple(
        ChainLink(number=key.number, public_key=key.public.hex(), previous_signature=key.signature.hex())
        for key in chain.keys
    )


def signature_of(public: bytes, signature: bytes, *, number: int) -> SeedSignature:
    """Return the record of a signature."""
    return SeedSignature(key_number=number, public_key=public.hex(), signature=signature.hex())


def verify_signatures(manifest: SeedManifest) -> None:
    """Check that the agent of the header and some System Authority signed the seed. Raises SeedInvalid."""
    signatures = manifest.signatures
    chain = KeyChain(
        public_id=manifest.header.public_id,
        tenant_id=signatures.tenant_id,
        keys=tuple(
            ChainKey(
                number=link.number,
                public=bytes.fromhex(link.public_key),
                signature=bytes.fromhex(link.previous_signature),
            )
            for link in signatures.keys
        ),
    )
    try:
        chain.verify()
    except IdentityRefused as error:
        raise SeedInvalid(f"the seed is not signed by the agent that it names: {error}") from error
    signed = manifest.trailer.signed_bytes()
    for signer, signature in (("its agent", signatures.agent), ("a System Authority", signatures.authority)):
        if not verify_hex(bytes.fromhex(signature.public_key), signed, signature.signature):
            raise SeedInvalid(f"the seed is not signed by {signer}: it was changed after its export")
    if bytes.fromhex(signatures.agent.public_key) != chain.current.public:
        raise SeedInvalid(
            "the seed is not signed by the last key of its agent: it was changed after its export"
        )


def is_own(manifest: SeedManifest, authority_keys: Collection[bytes]) -> bool:
    """Return whether one of these keys of a System Authority signed the verified seed."""
    signer = bytes.fromhex(manifest.signatures.authority.public_key)
    return any(secrets.compare_digest(signer, key) for key in authority_keys)
