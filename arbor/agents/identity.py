"""The cryptographic identity of an agent: key pair, derived public id, sealed private key.

The private key is sealed (`arbor.sealing`) with the agent and its tenant as bound data, so a sealed key copied to the
row of another agent or tenant cannot be opened.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from arbor.errors import SealBroken
from arbor.sealing import SEAL_VERSION, MasterKeys, OpenedSecret, SealedRecord, seal, unseal

PUBLIC_ID_PREFIX = "agent_"
KEY_BYTES = 32  # Ed25519, RFC 8032

# A label is part of the bound data: changing it makes every key sealed under it unreadable.
_SEAL_LABEL = b"arbor/seal/v1"
_SEAL_PURPOSE = "agent-private-key"


@dataclass(frozen=True, kw_only=True)
class PrivateKey:
    """An Ed25519 private key that cannot be printed or pickled by accident."""

    raw: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.raw) != KEY_BYTES:
            raise ValueError(f"an Ed25519 private key has {KEY_BYTES} bytes, got {len(self.raw)}")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key does not leave the process; seal it first")


@dataclass(frozen=True, kw_only=True)
class KeyPair:
    """An agent's keys; `public` is the raw 32 bytes."""

    public: bytes
    private: PrivateKey

    @property
    def public_id(self) -> str:
        """Return the agent's public id."""
        return public_id(self.public)


def generate_key_pair() -> KeyPair:
    """Make a new Ed25519 key pair from the system's randomness."""
    key = Ed25519PrivateKey.generate()
    return KeyPair(
        public=key.public_key().public_bytes_raw(), private=PrivateKey(raw=key.private_bytes_raw())
    )


def public_id(public_key: bytes) -> str:
    """Return `agent_` and the hex SHA-256 of the raw public key: 70 characters."""
    return PUBLIC_ID_PREFIX + hashlib.sha256(public_key).hexdigest()


def sign(private: PrivateKey, message: bytes) -> bytes:
    """Return the 64-byte Ed25519 signature of a message."""
    return Ed25519PrivateKey.from_private_bytes(private.raw).sign(message)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the signature is this public key's over this message."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def verify_hex(public_key: bytes, message: bytes, signature: str) -> bool:
    """Verify a signature in hexadecimal digits; return False for a damaged key or signature too."""
    try:
        return verify(public_key, message, bytes.fromhex(signature))
    except ValueError:
        return False


def seal_private_key(
    private: PrivateKey, *, keys: MasterKeys, agent_public_id: str, tenant_id: str, label: str = ""
) -> SealedRecord:
    """Encrypt a private key so that only the current master key opens it, and only for this agent of this tenant.

    `label` names the key among those of the agent (`arbor.agents.keys.key_label`); empty for its first signing key.
    """
    bound = _bound_data(SEAL_VERSION, agent_public_id, tenant_id, label)
    return seal(private.raw, keys=keys, purpose=_SEAL_PURPOSE, bound=bound)


def open_private_key(
    sealed: SealedRecord, *, keys: MasterKeys, agent_public_id: str, tenant_id: str, label: str = ""
) -> PrivateKey:
    """Decrypt a sealed private key.

    Raises SealBroken if the master key, the agent, the tenant or the label is another, or if a single bit was changed.
    """
    opened = unseal_private_key(
        sealed, keys=keys, agent_public_id=agent_public_id, tenant_id=tenant_id, label=label
    )
    return PrivateKey(raw=opened.raw)


def unseal_private_key(
    sealed: SealedRecord, *, keys: MasterKeys, agent_public_id: str, tenant_id: str, label: str
) -> OpenedSecret:
    """Decrypt a sealed private key, and find the master key that it is sealed under. Raises SealBroken."""
    subject = f"the sealed key of {agent_public_id}"
    if len(sealed.ct) != KEY_BYTES:
        raise SealBroken(f"{subject} has parts of the wrong length: it is damaged")
    bound = _bound_data(sealed.v, agent_public_id, tenant_id, label)
    return unseal(sealed, keys=keys, purpose=_SEAL_PURPOSE, bound=bound, subject=subject)


def prefixed_bytes(*parts: bytes | str | int) -> bytes:
    """Join parts, each after its length in four bytes, so that no two lists of parts give the same bytes."""
    encoded = (part if isinstance(part, bytes) else str(part).encode() for part in parts)
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _bound_data(version: int, agent_public_id: str, tenant_id: str, label: str) -> bytes:
    parts = (_SEAL_LABEL, version, agent_public_id, tenant_id)
    # Records of first keys, which are older than chains of keys, name no label.
    return prefixed_bytes(*parts, label) if label else prefixed_bytes(*parts)
