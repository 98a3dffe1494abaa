"""The cryptographic identity of an agent: key pair, derived public id, sealed private key.

The master key never encrypts anything itself: each use gets a key of its own, derived by HKDF-SHA256 with a label
that names the purpose. The private key is sealed with AES-256-GCM; the agent and its tenant are bound as associated
data, so a sealed key copied to the row of another agent or tenant cannot be opened.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, Self

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from arbor.errors import ConfigurationInvalid, SealBroken

PUBLIC_ID_PREFIX = "agent_"
MASTER_KEY_BYTES = 32  # AES-256 strength
KEY_BYTES = 32  # Ed25519, RFC 8032
IV_BYTES = 12  # GCM's own nonce length, NIST SP 800-38D 5.2.1.1
TAG_BYTES = 16
SEAL_VERSION = 1

# Labels are part of the derivation: changing one makes every key sealed under it unreadable.
_DERIVATION_LABEL = b"arbor/derive/v1/"
_SEAL_LABEL = b"arbor/seal/v1"
_SEAL_PURPOSE = "agent-private-key"

_HEX_KEY = re.compile(r"[0-9a-fA-F]{64}")
_KEY_HINT = "make one with: openssl rand -base64 32"


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


@dataclass(frozen=True, kw_only=True)
class SealedKey:
    """A private key at rest: version, ciphertext, initialisation vector, authentication tag."""

    v: int
    ct: bytes
    iv: bytes
    tag: bytes

    def to_json(self) -> dict[str, int | str]:
        """Return the record {v, ct, iv, tag}, its bytes in base64."""
        return {
            "v": self.v,
            "ct": _to_base64(self.ct),
            "iv": _to_base64(self.iv),
            "tag": _to_base64(self.tag),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Parse a record; raise SealBroken if `to_json` did not write it."""
        if set(record) != {"v", "ct", "iv", "tag"} or type(record["v"]) is not int:
            raise SealBroken(f"a sealed key is a record of v, ct, iv and tag, got {sorted(record)}")
        return cls(v=record["v"], **{part: _from_base64(part, record[part]) for part in ("ct", "iv", "tag")})


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


def seal_private_key(
    private: PrivateKey, *, master_key: bytes, agent_public_id: str, tenant_id: str
) -> SealedKey:
    """Encrypt a private key so that only this master key opens it, and only for this agent of this tenant."""
    iv = os.urandom(IV_BYTES)
    cipher = AESGCM(derive_secret(master_key, _SEAL_PURPOSE))
    sealed = cipher.encrypt(iv, private.raw, _associated_data(SEAL_VERSION, agent_public_id, tenant_id))
    return SealedKey(v=SEAL_VERSION, ct=sealed[:-TAG_BYTES], iv=iv, tag=sealed[-TAG_BYTES:])


def open_private_key(
    sealed: SealedKey, *, master_key: bytes, agent_public_id: str, tenant_id: str
) -> PrivateKey:
    """Decrypt a sealed private key.

    Raises SealBroken if the master key, the agent or the tenant is another, or if a single bit was changed.
    """
    if sealed.v != SEAL_VERSION:
        raise SealBroken(
            f"the sealed key of {agent_public_id} has version {sealed.v}; this Arbor reads {SEAL_VERSION}"
        )
    if (len(sealed.ct), len(sealed.iv), len(sealed.tag)) != (KEY_BYTES, IV_BYTES, TAG_BYTES):
        raise SealBroken(f"the sealed key of {agent_public_id} has parts of the wrong length: it is damaged")
    cipher = AESGCM(derive_secret(master_key, _SEAL_PURPOSE))
    try:
        raw = cipher.decrypt(
            sealed.iv, sealed.ct + sealed.tag, _associated_data(sealed.v, agent_public_id, tenant_id)
        )
    except InvalidTag as exc:
        raise SealBroken(
            f"the sealed key of {agent_public_id} does not open: another master key, another agent or tenant, "
            "or damaged data; is ARBOR_MASTER_KEY the one it was created under?"
        ) from exc
    return PrivateKey(raw=raw)


def derive_secret(master_key: bytes, purpose: str, length: int = 32) -> bytes:
    """Derive a secret of `length` bytes for one purpose from the master key (HKDF-SHA256, RFC 5869).

    Secrets of different purposes reveal nothing about each other or the master key.
    """
    if len(master_key) != MASTER_KEY_BYTES:
        raise ConfigurationInvalid(f"the master key must be {MASTER_KEY_BYTES} bytes, got {len(master_key)}")
    if not purpose:
        raise ValueError("a derived secret needs a purpose, got an empty one")
    info = _DERIVATION_LABEL + purpose.encode()
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(master_key)


def parse_master_key(text: str) -> bytes:
    """Parse a master key of 32 bytes from 64 hex digits or from base64 (either alphabet, padded or not).

    Raises ConfigurationInvalid; its message never contains the text.
    """
    key = _decode_key(text.strip())
    if key is None:
        raise ConfigurationInvalid(
            f"ARBOR_MASTER_KEY must be {MASTER_KEY_BYTES} random bytes in base64 or as 64 hex digits, "
            f"got {len(text.strip())} characters that are neither; {_KEY_HINT}"
        )
    if len(key) != MASTER_KEY_BYTES:
        raise ConfigurationInvalid(
            f"ARBOR_MASTER_KEY must be {MASTER_KEY_BYTES} random bytes, got {len(key)}; {_KEY_HINT}"
        )
    if len(set(key)) == 1:
        raise ConfigurationInvalid(
            f"ARBOR_MASTER_KEY is one byte repeated, which protects nothing; {_KEY_HINT}"
        )
    return key


def _decode_key(text: str) -> bytes | None:
    # Try hex first: 64 hex digits are also valid base64, of 48 other bytes.
    if _HEX_KEY.fullmatch(text):
        return bytes.fromhex(text)
    unpadded = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(unpadded + "=" * (-len(unpadded) % 4), validate=True) or None
    except ValueError:
        return None


def _associated_data(version: int, agent_public_id: str, tenant_id: str) -> bytes:
    # Each part begins with its length, so no two pairs of ids give the same bytes.
    parts = (_SEAL_LABEL, str(version).encode(), agent_public_id.encode(), tenant_id.encode())
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _from_base64(part: str, text: object) -> bytes:
    """Decode base64, accepting only the one spelling that `_to_base64` writes."""
    try:
        raw = base64.b64decode(str(text), validate=True)
    except ValueError as exc:
        raise SealBroken(f"the {part} of a sealed key is not base64: the record is damaged") from exc
    if _to_base64(raw) != text:
        raise SealBroken(
            f"the {part} of a sealed key is not the base64 that was written: the record is damaged"
        )
    return raw
