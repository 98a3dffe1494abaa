"""Verify who signed a seed: its agent, by its chain of keys, and the System Authority of an installation."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Protocol

from arbor.agents.identity import KeyPair, generate_key_pair, public_id, sign, verify
from arbor.errors import SeedInvalid
from arbor.seeds.manifest import ChainLink, SeedManifest, SeedSignature, SeedSignatures

type LinkBytes = Callable[[str, int, bytes], bytes]


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
        link = ChainLink(number=1, public_key=self.agent.public.hex())
        return SeedSignatures(
            keys=(link,),
            agent=signature_of(signed, self.agent, number=1),
            authority=signature_of(signed, self.authority, number=1),
        )


def signature_of(signed: bytes, pair: KeyPair, *, number: int) -> SeedSignature:
    """Return a key pair's signature."""
    return SeedSignature(
        key_number=number, public_key=pair.public.hex(), signature=sign(pair.private, signed).hex()
    )


def verify_signatures(manifest: SeedManifest, *, link_bytes: LinkBytes) -> None:
    """Check that the agent of the header and some System Authority signed the seed.

    `link_bytes(public_id, number, public_key)` are the bytes that a key signs to appoint the next. Raises SeedInvalid.
    """
    signed = manifest.trailer.signed_bytes()
    signatures = manifest.signatures
    links = signatures.keys
    if not links or public_id(bytes.fromhex(links[0].public_key)) != manifest.header.public_id:
        raise SeedInvalid("the seed is not signed by the agent that it names: its first key has another id")
    for before, link in pairwise(links):
        appointed = link_bytes(manifest.header.public_id, link.number, bytes.fromhex(link.public_key))
        if link.number != before.number + 1 or not _verified(
            before.public_key, appointed, link.previous_signature
        ):
            raise SeedInvalid(f"key {link.number} of the seed's agent is not signed by the key before it")
    agent = signatures.agent
    if agent.public_key != links[-1].public_key or not _verified(agent.public_key, signed, agent.signature):
        raise SeedInvalid("the seed is not signed by its agent: it was changed after its export")
    if not _verified(signatures.authority.public_key, signed, signatures.authority.signature):
        raise SeedInvalid("the seed is not signed by a System Authority: it was changed after its export")


def is_own(manifest: SeedManifest, authority_keys: Collection[bytes]) -> bool:
    """Return whether one of these keys of a System Authority signed the verified seed."""
    signer = bytes.fromhex(manifest.signatures.authority.public_key)
    return any(secrets.compare_digest(signer, key) for key in authority_keys)


def _verified(public_key: str, message: bytes, signature: str) -> bool:
    try:
        return verify(bytes.fromhex(public_key), message, bytes.fromhex(signature))
    except ValueError:
        return False
