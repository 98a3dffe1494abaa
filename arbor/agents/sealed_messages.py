"""Messages between agents: encrypted for their receiver, signed by their sender.

A message is sealed by HPKE (RFC 9180) with X25519, HKDF-SHA256 and AES-256-GCM, and then signed with Ed25519. Both cover the tenant,
the sender, the receiver, the id and the time of the message, so a message that is copied, exchanged with another one or sent again
under another id neither opens nor verifies.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from arbor.agents.identity import PrivateKey, prefixed_bytes, verify
from arbor.errors import MessageRefused

MESSAGE_VERSION = 1

# Labels are part of what is sealed and signed: changing one makes every message under it worthless.
_SEAL_LABEL = "arbor/message/seal/v1"
_SIGNATURE_LABEL = "arbor/message/signature/v1"
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_PARTS = {"v": int, "at": str, "signed_by": int, "sealed_for": int, "box": str, "signature": str}


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageRoute:
    """The path of one message, which its seal and its signature are bound to; agents by their public ids."""

    tenant_id: str
    message_id: str
    sender: str
    receiver: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SealedMessage:
    """A message as it is stored until its receiver takes it in."""

    v: int
    at: datetime
    #: The numbers of the sender's signing key and of the receiver's exchange key.
    signed_by: int
    sealed_for: int
    #: The ephemeral public key, the ciphertext and its tag, as HPKE joins them.
    box: bytes
    signature: bytes

    def to_json(self) -> dict[str, int | str]:
        """Return the record, its bytes in base64."""
        return {
            "v": self.v,
            "at": _timestamp(self.at),
            "signed_by": self.signed_by,
            "sealed_for": self.sealed_for,
            "box": base64.b64encode(self.box).decode("ascii"),
            "signature": base64.b64encode(self.signature).decode("ascii"),
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Self:
        """Parse a record; raise MessageRefused if `to_json` did not write it."""
        if {name: type(value) for name, value in record.items()} != _PARTS:
            raise MessageRefused(f"a sealed message consists of {', '.join(_PARTS)}, got {sorted(record)}")
        try:
            return cls(
                v=record["v"],
                at=datetime.fromisoformat(record["at"]),
                signed_by=record["signed_by"],
                sealed_for=record["sealed_for"],
                box=base64.b64decode(record["box"], validate=True),
                signature=base64.b64decode(record["signature"], validate=True),
            )
        except ValueError as exc:
            raise MessageRefused("the sealed message is damaged: its parts cannot be read") from exc


def seal_message(
    text: str,
    *,
    route: MessageRoute,
    at: datetime,
    sealed_for: int,
    exchange_public: bytes,
    signed_by: int,
    sign: Callable[[bytes], bytes],
) -> SealedMessage:
    """Encrypt a message for the receiver's exchange key and sign it; the numbers are those of the two keys."""
    bound = _bound_data(MESSAGE_VERSION, route, at, signed_by, sealed_for)
    box = _SUITE.encrypt(text.encode(), X25519PublicKey.from_public_bytes(exchange_public), info=bound)
    return SealedMessage(
        v=MESSAGE_VERSION,
        at=at,
        signed_by=signed_by,
        sealed_for=sealed_for,
        box=box,
        signature=sign(_statement(bound, box)),
    )


def open_message(
    sealed: SealedMessage, *, route: MessageRoute, signing_public: bytes, exchange_private: PrivateKey
) -> str:
    """Verify a message with the sender's public key, and decrypt it with the receiver's private exchange key.

    Raises MessageRefused if the sender did not sign it for this route, if it is for another key, or if a single bit was changed.
    """
    if sealed.v != MESSAGE_VERSION:
        raise MessageRefused(f"the message has version {sealed.v}; this Arbor reads {MESSAGE_VERSION}")
    bound = _bound_data(sealed.v, route, sealed.at, sealed.signed_by, sealed.sealed_for)
    if not verify(signing_public, _statement(bound, sealed.box), sealed.signature):
        raise MessageRefused(
            f"the message is not signed by {route.sender} for {route.receiver}: another sender or receiver,"
            " another message's parts, or damaged"
        )
    private = X25519PrivateKey.from_private_bytes(exchange_private.raw)
    try:
        return _SUITE.decrypt(sealed.box, private, info=bound).decode()
    except (InvalidTag, ValueError) as exc:
        raise MessageRefused(
            f"the message does not open with the exchange key {sealed.sealed_for} of {route.receiver}"
        ) from exc


def _statement(bound: bytes, box: bytes) -> bytes:
    return prefixed_bytes(_SIGNATURE_LABEL, bound, box)


def _bound_data(version: int, route: MessageRoute, at: datetime, signed_by: int, sealed_for: int) -> bytes:
    return prefixed_bytes(
        _SEAL_LABEL,
        version,
        route.tenant_id,
        route.message_id,
        route.sender,
        route.receiver,
        _timestamp(at),
        signed_by,
        sealed_for,
    )


def _timestamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
