"""Verify the signatures of deliveries: GitHub's, those of Standard Webhooks, or a named header with an HMAC in hexadecimal."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from arbor.contacts.hooks import HookKind
from arbor.contacts.standard_webhooks import (
    SECRET_PREFIX,
    STANDARD_ID,
    STANDARD_SIGNATURE,
    STANDARD_TIME,
)
from arbor.errors import Invalid, SignatureRefused

#: The farthest that the signed time of a delivery may be from now (Standard Webhooks, "Verifying webhook authenticity").
TOLERANCE = timedelta(minutes=5)
MIN_SECRET, MAX_SECRET = 16, 200
GITHUB_SIGNATURE = "x-hub-signature-256"
GITHUB_EVENT, GITHUB_DELIVERY = "x-github-event", "x-github-delivery"
#: The beginning of the same headers at senders that use Svix, where the specification is from.
_SVIX = "svix-"
ID_LENGTH = 200
_MAX_SIGNATURES = 10
_HEADER = re.compile(r"[A-Za-z0-9-]{1,60}")


@dataclass(frozen=True, kw_only=True)
class VerifiedId:
    """The identity of a delivery whose signature is right."""

    #: The same for every repetition of the delivery. It is signed, so that nobody else can repeat the delivery under another key.
    once_key: str
    #: The sender's id, as its own log shows it.
    delivery_id: str


def verify_delivery(
    *,
    kind: HookKind,
    header: str,
    secrets: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    now: datetime,
) -> VerifiedId:
    """Verify a delivery by any of the secrets; `headers` has lower-case names. Raises SignatureRefused with the reason.

    `header` is the name of the header with the signature of a `json` hook; empty: Standard Webhooks.
    """
    if kind is HookKind.JSON and not header:
        return _verify_standard(secrets, headers, body, now)
    name = GITHUB_SIGNATURE if kind is HookKind.GITHUB else header.lower()
    given = headers.get(name, "").strip()
    if not given:
        raise SignatureRefused(f"the request has no header {name}")
    digest = given.removeprefix("sha256=").lower()
    expected = [hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() for secret in secrets]
    if not _matches([digest], expected):
        raise SignatureRefused(f"the signature in {name} is not that of the body under the hook's secret")
    # The id of such a delivery is not signed, but its body is.
    return VerifiedId(
        once_key=f"body:{hashlib.sha256(body).hexdigest()}",
        delivery_id=_printable(headers.get(GITHUB_DELIVERY, "") if kind is HookKind.GITHUB else ""),
    )


def check_secret(secret: str, *, kind: HookKind, header: str) -> None:
    """Raise Invalid unless a secret that a sender gave can be a hook's."""
    if not MIN_SECRET <= len(secret) <= MAX_SECRET or not secret.isprintable():
        raise Invalid(
            f"a hook's secret has {MIN_SECRET} to {MAX_SECRET} printable characters, got {len(secret)} characters"
        )
    if kind is HookKind.JSON and not header and _standard_key(secret) is None:
        raise Invalid(f"a secret of Standard Webhooks is {SECRET_PREFIX} and base64, as its sender shows it")


def check_header(header: str) -> None:
    """Raise Invalid unless a header can have a hook's signature."""
    if header and not _HEADER.fullmatch(header):
        raise Invalid(
            f"the header of a signature has letters, digits and hyphens, at most 60, got {header[:100]!r}"
        )


def _verify_standard(
    secrets: Sequence[str], headers: Mapping[str, str], body: bytes, now: datetime
) -> VerifiedId:
    message_id, at, signatures = (
        _standard_header(headers, name) for name in (STANDARD_ID, STANDARD_TIME, STANDARD_SIGNATURE)
    )
    signed = f"{message_id}.{at}.".encode() + body
    keys = [key for key in map(_standard_key, secrets) if key is not None]
    expected = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys]
    parts = signatures.split()[:_MAX_SIGNATURES]
    given = [part.removeprefix("v1,") for part in parts if part.startswith("v1,")]
    if not _matches(given, expected):
        raise SignatureRefused(
            f"no signature in {STANDARD_SIGNATURE} is that of the request under the hook's secret"
        )
    _check_time(at, now)
    if not 0 < len(message_id) <= ID_LENGTH or not message_id.isprintable():
        raise SignatureRefused(f"{STANDARD_ID} has 1 to {ID_LENGTH} printable characters")
    return VerifiedId(once_key=f"id:{message_id}", delivery_id=message_id)


def _standard_header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name) or headers.get(name.replace("webhook-", _SVIX))
    if not value:
        raise SignatureRefused(f"the request has no header {name}")
    return value


def _check_time(text: str, now: datetime) -> None:
    if not text.isascii() or not text.isdecimal() or len(text) > 11:
        raise SignatureRefused(f"{STANDARD_TIME} must be Unix seconds, got {text[:40]!r}")
    distance = abs(now - datetime.fromtimestamp(int(text), tz=UTC))
    if distance > TOLERANCE:
        raise SignatureRefused(
            f"{STANDARD_TIME} is {distance / timedelta(minutes=1):,.0f} minutes from now, more than"
            f" {TOLERANCE // timedelta(minutes=1)}: check the clocks of both machines"
        )


def _matches(given: Sequence[str], expected: Sequence[str]) -> bool:
    """Compare each signature with each expected one, in a time that does not depend on their content."""
    found = False
    for signature in given:
        for right in expected:
            found |= hmac.compare_digest(signature.encode(), right.encode())
    return found


def _standard_key(secret: str) -> bytes | None:
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        return None


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())[:ID_LENGTH]
