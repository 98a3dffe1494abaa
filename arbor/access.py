"""API tokens as texts: generated, parsed, hashed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

#: The beginning of every token, by which scanners of source code recognize a leaked one.
MARK = "arbor_"
_ID_BYTES, _TENANT_BYTES, _SECRET_BYTES = 6, 16, 32
_TOKEN_BYTES = _ID_BYTES + _TENANT_BYTES + _SECRET_BYTES
#: The public part: the mark and the token's id in base64.
PREFIX_LENGTH = len(MARK) + _ID_BYTES * 4 // 3
#: The use of a token is stored at most once within this time.
USE_STORED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class TokenText:
    """A parsed token."""

    #: The tenant in which the token is looked up. The token's hash proves it.
    tenant_id: UUID
    prefix: str
    text: str = field(repr=False)

    @property
    def digest(self) -> bytes:
        """The hash that is stored.

        A plain SHA-256: the token has 256 random bits, which nobody guesses, so that a slow hash would only slow requests.
        """
        return hashlib.sha256(self.text.encode()).digest()

    def matches(self, digest: bytes) -> bool:
        """Return whether the token has this hash, in constant time."""
        return hmac.compare_digest(self.digest, digest)


def generate_token(tenant_id: UUID) -> TokenText:
    """Return a new random token of a tenant."""
    token_id, secret = secrets.token_bytes(_ID_BYTES), secrets.token_bytes(_SECRET_BYTES)
    text = MARK + base64.urlsafe_b64encode(token_id + tenant_id.bytes + secret).decode()
    return TokenText(tenant_id=tenant_id, prefix=text[:PREFIX_LENGTH], text=text)


def parse_token(text: str) -> TokenText | None:
    """Parse a token; return None for a text that is not a token."""
    if not text.startswith(MARK) or not text.isascii() or len(text) != len(MARK) + _TOKEN_BYTES * 4 // 3:
        return None
    try:
        parts = base64.b64decode(text.removeprefix(MARK), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    tenant_id = UUID(bytes=parts[_ID_BYTES : _ID_BYTES + _TENANT_BYTES])
    return TokenText(tenant_id=tenant_id, prefix=text[:PREFIX_LENGTH], text=text)
