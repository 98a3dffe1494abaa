"""Console sessions as rows that name their user and end when they are idle."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.contrib.auth import SESSION_KEY as USER_KEY
from django.contrib.sessions.backends.base import CreateError, UpdateError
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.middleware import SessionMiddleware as DjangoSessionMiddleware
from django.contrib.sessions.serializers import JSONSerializer
from django.core import signing
from django.http import HttpRequest
from django.utils import timezone

from apps.tenants.keys import session_secrets
from apps.tenants.models import ConsoleSession

__all__ = [
    "CreateError",
    "SessionMiddleware",
    "SessionStore",
    "UpdateError",
    "is_live_request",
    "public_id_of",
    "store_sign_in",
]

log = structlog.get_logger(__name__)

#: The session's key for its sign-in: {at, address, browser}.
SIGN_IN_KEY = "sign_in"
#: The header of a request that a page makes by itself, not its person.
LIVE_REQUEST_HEADER = "X-Live"
#: A request within this time of the last recorded one writes nothing.
_RECORDED_EVERY = timedelta(minutes=1)
#: The salt of Django's own store, so that sessions from before stay valid.
_SALT = "django.contrib.sessions.SessionStore"
_ADDRESS_LENGTH, _BROWSER_LENGTH = 64, 200


class SessionStore(DatabaseStore):
    """Reads and writes `ConsoleSession`; a session that was idle for `ARBOR_SESSION_IDLE` is deleted when it is read."""

    #: Whether the request counts as use of the session: one that a page makes by itself does not.
    is_used = True

    @classmethod
    def get_model_class(cls) -> type[ConsoleSession]:
        """Return the model of the rows."""
        return ConsoleSession

    def _validate_session_key(self, key: str | None) -> bool:
        """Return whether a key can be one of a session: a cookie may contain what the database cannot store, such as NUL."""
        return bool(super()._validate_session_key(key)) and str(key).isalnum()  # type: ignore[misc]

    def encode(self, session_dict: dict[str, Any]) -> str:
        """Return the session as a text that the current master key has signed."""
        return sign_session(session_dict)

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """Return the session; an empty one if no open master key has signed the text."""
        try:
            return read_session(str(session_data))[0]
        except signing.BadSignature:
            log.warning("session_refused")
            return {}

    def _get_session_from_db(self) -> ConsoleSession | None:
        row: ConsoleSession | None = super()._get_session_from_db()  # type: ignore[misc]
        if row is None:
            return None
        now = timezone.now()
        if row.seen_at < now - settings.ARBOR_SESSION_IDLE:
            self._session_key = None
            row.delete()
            return None
        if self.is_used and row.seen_at < now - _RECORDED_EVERY:
            ConsoleSession.objects.filter(session_key=row.session_key).update(seen_at=now)
        return row

    def create_model_instance(self, data: dict[str, Any]) -> ConsoleSession:
        """Return the row of a session, with what the session carries about its person."""
        row: ConsoleSession = super().create_model_instance(data)  # type: ignore[assignment]
        sign_in = data.get(SIGN_IN_KEY, {})
        row.public_id = public_id_of(row.session_key)
        row.user_id = int(data[USER_KEY]) if USER_KEY in data else None
        if sign_in:
            row.signed_in_at = datetime.fromisoformat(sign_in["at"])
            row.expire_date = row.signed_in_at + settings.ARBOR_SESSION_AGE
        row.address = sign_in.get("address", "")
        row.browser = sign_in.get("browser", "")
        row.seen_at = timezone.now()
        return row


def is_live_request(request: HttpRequest) -> bool:
    """Return whether a page made the request by itself, to update its content."""
    return LIVE_REQUEST_HEADER in request.headers


class SessionMiddleware(DjangoSessionMiddleware):
    """Opens the session; an open page that updates by itself does not stop the session from being idle."""

    def process_request(self, request: HttpRequest) -> None:
        """Set `request.session`."""
        super().process_request(request)
        request.session.is_used = not is_live_request(request)  # type: ignore[attr-defined]


def sign_session(session: dict[str, Any]) -> str:
    """Encode a session, signed by the first of the session secrets."""
    return signing.dumps(
        session, key=session_secrets()[0], salt=_SALT, serializer=JSONSerializer, compress=True
    )


def read_session(text: str) -> tuple[dict[str, Any], int]:
    """Decode a session; return it with the position of the secret that signed it. Raises BadSignature."""
    for position, key in enumerate(session_secrets()):
        try:
            session: dict[str, Any] = signing.loads(
                text, key=key, fallback_keys=[], salt=_SALT, serializer=JSONSerializer
            )
        except signing.BadSignature:
            continue
        return session, position
    raise signing.BadSignature("no open key has signed the session")


def store_sign_in(session: Any, *, address: str, browser: str) -> None:
    """Store in a session when, from where and with which browser its person signed in."""
    session[SIGN_IN_KEY] = {
        "at": timezone.now().isoformat(),
        "address": address[:_ADDRESS_LENGTH],
        "browser": browser.replace("\0", "")[:_BROWSER_LENGTH],
    }


def public_id_of(session_key: str) -> UUID:
    """Return the id that names a session without opening it."""
    return UUID(bytes=hashlib.sha256(session_key.encode()).digest()[:16])
