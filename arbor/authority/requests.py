"""Signed requests: each names the resource, body and nonce of an action, and one signature covers all requests of a round trip."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Protocol
from uuid import UUID

import orjson
from pydantic import AliasChoices, Field

from arbor.agents.identity import prefixed_bytes, verify_hex

_REQUEST_LABEL = "arbor/request/v1"
_ROUND_TRIP_LABEL = b"arbor/requests/v1"
# The actions of a round trip are checked one after another against one signature.
_SIGNATURES_CACHED = 256
# Key, message and signature of the latest signatures of this process, the oldest first: `act` mostly runs in the process that signed.
_made: dict[tuple[bytes, bytes, str], None] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Nonce:
    """The place of a request, which is used once: each action of a heartbeat has its own."""

    heartbeat_id: UUID
    #: `turn` in older checkpoints; signed by its place, not by its name.
    round_trip: Annotated[int, Field(validation_alias=AliasChoices("round_trip", "turn"))]
    index: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionRequest:
    """A request to carry out one action."""

    resource: str
    #: The public id of the agent.
    agent: str
    at: datetime
    body_hash: str
    nonce: Nonce

    def digest(self) -> bytes:
        """Return the SHA-256 of the fields, each behind its length."""
        fields = prefixed_bytes(
            _REQUEST_LABEL,
            self.resource,
            self.agent,
            self.at.astimezone(UTC).isoformat(),
            self.body_hash,
            self.nonce.heartbeat_id.bytes,
            self.nonce.round_trip,
            self.nonce.index,
        )
        return hashlib.sha256(fields).digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class SignedRequests:
    """The requests of one round trip in order, under one signature."""

    requests: tuple[ActionRequest, ...]
    #: The number of the agent's signing key.
    key_number: int
    #: In hexadecimal digits.
    signature: str

    def message(self) -> bytes:
        """Return the bytes that are signed."""
        return message_of(self.requests, self.key_number)

    def is_signed_by(self, key: bytes) -> bool:
        """Return whether the key pair of a public key signed the requests; signatures that this process has just made are not checked."""
        message = self.message()
        return (key, message, self.signature) in _made or _is_signature(key, message, self.signature)


class Signer(Protocol):
    """Signs the requests of one agent."""

    def sign_requests(self, requests: Sequence[ActionRequest]) -> SignedRequests:
        """Return the requests under one signature."""
        ...


class RequestSigningKey(Protocol):
    """A private signing key in memory."""

    @property
    def number(self) -> int:
        """Return its number among the signing keys of the agent."""
        ...

    @property
    def public(self) -> bytes:
        """Return the raw public key, computed from the private one."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of a message."""
        ...


class KeySigner:
    """Signs with a key that is opened at the first signature."""

    def __init__(self, key: Callable[[], RequestSigningKey]) -> None:
        self._key = key

    def sign_requests(self, requests: Sequence[ActionRequest]) -> SignedRequests:
        """Return the requests under one signature. Raises what opening the key raises."""
        key = self._key()
        message = message_of(requests, key.number)
        signature = key.sign(message).hex()
        _made[key.public, message, signature] = None
        if len(_made) > _SIGNATURES_CACHED:
            _made.pop(next(iter(_made)), None)
        return SignedRequests(requests=tuple(requests), key_number=key.number, signature=signature)


def message_of(requests: Sequence[ActionRequest], key_number: int) -> bytes:
    """Return the bytes to sign for the requests of a round trip, in order."""
    return b"".join(
        [_ROUND_TRIP_LABEL, key_number.to_bytes(4, "big"), *(request.digest() for request in requests)]
    )


def canonical_body(params: Mapping[str, Any]) -> bytes:
    """Return parameters as canonical JSON."""
    try:
        return orjson.dumps(params, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # Integers of more than 64 bits, which a tool may take.
        return json.dumps(params, sort_keys=True, separators=(",", ":")).encode()


def body_hash(params: Mapping[str, Any]) -> str:
    """Return the SHA-256 of parameters as canonical JSON."""
    return hashlib.sha256(canonical_body(params)).hexdigest()


_is_signature = lru_cache(maxsize=_SIGNATURES_CACHED)(verify_hex)
