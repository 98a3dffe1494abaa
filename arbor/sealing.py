"""Secrets at rest: master keys, the secrets derived from them, and records sealed under them.

A master key never encrypts anything itself: each use gets a key of its own, derived by HKDF-SHA256 with a label that
names the purpose. Records are sealed with AES-256-GCM and bound to their row, so that a record copied to another row
cannot be opened. During a rotation there are two keys: the current one seals, and both open.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from arbor.errors import ConfigurationInvalid, SealBroken

MASTER_KEY_BYTES = 32  # AES-256
IV_BYTES = 12  # GCM's recommended nonce length, NIST SP 800-38D 5.2.1.1
TAG_BYTES = 16
SEAL_VERSION = 1

# Labels are part of the derivation: changing one makes every record sealed under it unreadable.
_DERIVATION_LABEL = b"arbor/derive/v1/"
_KEY_ID_PURPOSE = "master-key-id"
#: The purpose of the secret that signs sessions, which is Django's secret key too.
SESSION_PURPOSE = "django-secret-key"
_KEY_ID_BYTES = 4

_HEX_KEY = re.compile(r"[0-9a-fA-F]{64}")
_KEY_HINT = "make one with: openssl rand -base64 32"
_PARTS = ("ct", "iv", "tag")


@dataclass(frozen=True, kw_only=True)
class MasterKeys:
    """The master keys of an installation: the current one seals and opens; the other one, during a rotation, only opens."""

    current: bytes = field(repr=False)
    other: bytes | None = field(default=None, repr=False)

    @property
    def opening(self) -> tuple[bytes, ...]:
        """The keys that open, the current one first."""
        if self.other is None or self.other == self.current:
            return (self.current,)
        return (self.current, self.other)

    @property
    def current_id(self) -> str:
        """The id of the current key."""
        return key_id(self.current)

    @property
    def other_id(self) -> str | None:
        """The id of the other key, or None without one."""
        return key_id(self.opening[1]) if len(self.opening) > 1 else None

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the keys that open, the current one first."""
        return tuple(key_id(key) for key in self.opening)


@dataclass(frozen=True, kw_only=True)
class SealedRecord:
    """A secret at rest: version, ciphertext, initialization vector, authentication tag, and the id of the master key."""

    v: int
    ct: bytes
    iv: bytes
    tag: bytes
    #: None in records from before keys had ids.
    k: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record {v, k, ct, iv, tag}, its bytes in base64."""
        record: dict[str, Any] = {"v": self.v, **{part: _to_base64(getattr(self, part)) for part in _PARTS}}
        return record if self.k is None else {**record, "k": self.k}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Parse a record; raise SealBroken if `to_json` did not write it."""
        k = record.get("k")
        if (
            set(record) - {"k"} != {"v", *_PARTS}
            or type(record["v"]) is not int
            or type(k) not in (str, type(None))
        ):
            raise SealBroken(f"a sealed record consists of v, k, ct, iv and tag, got {sorted(record)}")
        return cls(v=record["v"], k=k, **{part: _from_base64(part, record[part]) for part in _PARTS})


@dataclass(frozen=True, kw_only=True)
class OpenedSecret:
    """An opened secret, and the id of the master key that it was sealed under."""

    raw: bytes = field(repr=False)
    key_id: str


def seal(raw: bytes, *, keys: MasterKeys, purpose: str, bound: bytes) -> SealedRecord:
    """Encrypt a secret so that only the current master key opens it, and only with the same bound data."""
    iv = os.urandom(IV_BYTES)
    sealed = AESGCM(derive_secret(keys.current, purpose)).encrypt(iv, raw, bound)
    return SealedRecord(
        v=SEAL_VERSION, ct=sealed[:-TAG_BYTES], iv=iv, tag=sealed[-TAG_BYTES:], k=keys.current_id
    )


def unseal(
    record: SealedRecord, *, keys: MasterKeys, purpose: str, bound: bytes, subject: str
) -> OpenedSecret:
    """Decrypt a sealed record; `subject` names it in errors.

    Raises SealBroken if the master key or the bound data is another, or if a single bit was changed.
    """
    if record.v != SEAL_VERSION:
        raise SealBroken(f"{subject} has version {record.v}; this Arbor reads {SEAL_VERSION}")
    if (len(record.iv), len(record.tag)) != (IV_BYTES, TAG_BYTES):
        raise SealBroken(f"{subject} has parts of the wrong length: it is damaged")
    if record.k is not None and record.k not in keys.ids:
        raise SealBroken(
            f"{subject} does not open: it is sealed under the master key {record.k}, and here is"
            f" {' and '.join(keys.ids)}; is ARBOR_MASTER_KEY the one it was created under?"
        )
    for key in keys.opening:
        if record.k not in (None, key_id(key)):
            continue
        try:
            raw = AESGCM(derive_secret(key, purpose)).decrypt(record.iv, record.ct + record.tag, bound)
        except InvalidTag:
            continue
        return OpenedSecret(raw=raw, key_id=key_id(key))
    raise SealBroken(
        f"{subject} does not open: another master key, another row, or damaged data;"
        " is ARBOR_MASTER_KEY the one it was created under?"
    )


@dataclass(frozen=True, kw_only=True)
class RowSecrets:
    """The secrets of one kind of rows of tenants, each bound to its row."""

    #: Part of the derivation: changing it makes every secret sealed under it unreadable.
    purpose: str
    #: The name of a row in errors.
    row: str

    def seal(self, secret: str, *, keys: MasterKeys, tenant_id: UUID, row_id: UUID) -> dict[str, Any]:
        """Encrypt a secret so that only the current master key opens it, and only for this row."""
        bound = self._bound(tenant_id, row_id)
        return seal(secret.encode(), keys=keys, purpose=self.purpose, bound=bound).to_json()

    def unseal(
        self, sealed: Mapping[str, Any], *, keys: MasterKeys, tenant_id: UUID, row_id: UUID
    ) -> OpenedSecret:
        """Decrypt a sealed secret. Raises SealBroken for another key, row or tenant, and for a record that is damaged."""
        return unseal(
            SealedRecord.from_json(sealed),
            keys=keys,
            purpose=self.purpose,
            bound=self._bound(tenant_id, row_id),
            subject=f"the sealed secret of {self.row} {row_id}",
        )

    def _bound(self, tenant_id: UUID, row_id: UUID) -> bytes:
        # Both have sixteen bytes, so no two pairs give the same bytes.
        return tenant_id.bytes + row_id.bytes


def derive_secret(master_key: bytes, purpose: str, length: int = 32) -> bytes:
    """Derive a secret of `length` bytes for one purpose from the master key (HKDF-SHA256, RFC 5869).

    Secrets of different purposes reveal nothing about each other or the master key. Raises ConfigurationInvalid for a master
    key of another length than 32 bytes, and ValueError without a purpose.
    """
    if len(master_key) != MASTER_KEY_BYTES:
        raise ConfigurationInvalid(f"the master key must be {MASTER_KEY_BYTES} bytes, got {len(master_key)}")
    if not purpose:
        raise ValueError("a derived secret needs a purpose, got an empty one")
    info = _DERIVATION_LABEL + purpose.encode()
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=info).derive(master_key)


def key_id(master_key: bytes) -> str:
    """Return the id of a master key, 8 hex digits, which reveals nothing about the key."""
    return derive_secret(master_key, _KEY_ID_PURPOSE, _KEY_ID_BYTES).hex()


def parse_master_key(text: str, *, name: str = "ARBOR_MASTER_KEY") -> bytes:
    """Parse a master key of 32 bytes from 64 hex digits or from base64 (either alphabet, padded or not).

    Raises ConfigurationInvalid; its message names the setting and never contains the text.
    """
    key = _decode_key(text.strip())
    if key is None:
        raise ConfigurationInvalid(
            f"{name} must be {MASTER_KEY_BYTES} random bytes in base64 or as 64 hex digits, "
            f"got {len(text.strip())} characters that are neither; {_KEY_HINT}"
        )
    if len(key) != MASTER_KEY_BYTES:
        raise ConfigurationInvalid(
            f"{name} must be {MASTER_KEY_BYTES} random bytes, got {len(key)}; {_KEY_HINT}"
        )
    if len(set(key)) == 1:
        raise ConfigurationInvalid(f"{name} is one byte repeated, which protects nothing; {_KEY_HINT}")
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


def _to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _from_base64(part: str, text: object) -> bytes:
    """Decode base64, accepting only the one spelling that `_to_base64` writes."""
    try:
        raw = base64.b64decode(str(text), validate=True)
    except ValueError as exc:
        raise SealBroken(f"the {part} of a sealed record is not base64: the record is damaged") from exc
    if _to_base64(raw) != text:
        raise SealBroken(
            f"the {part} of a sealed record is not the base64 that was written: the record is damaged"
        )
    return raw
