"""Check the name and password of a superuser for Flower against the console's account, so that both use one password."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

from django.contrib.auth import authenticate
from django.db import close_old_connections

from apps.fleet.sign_in import record_failed_sign_in, record_sign_in, require_sign_in_allowed
from apps.tenants.models import User
from arbor.errors import LimitReached
from arbor.models.json_text import is_storable

#: A page of Flower sends a request every few seconds; the account is read again after this time.
CHECKED_EVERY_S = 5.0
#: The most credentials that a process remembers.
_MAX_KNOWN = 100


@dataclass(frozen=True, kw_only=True)
class _CheckedCredentials:
    user_id: int
    #: The hash that the password was checked with, and when it was compared last.
    password_hash: str
    at: float


class OperatorCheck:
    """Remembers the credentials that were right, until the account changes."""

    def __init__(self) -> None:
        self._known: dict[bytes, _CheckedCredentials] = {}

    def accepts(self, username: str, password: str, address: str) -> bool:
        """Return whether the name and password are those of an active superuser. A failure counts as a failed sign-in."""
        digest = hashlib.sha256(f"{username}\0{password}".encode("utf-8", "replace")).digest()
        known = self._known.get(digest)
        if known is not None and time.monotonic() - known.at < CHECKED_EVERY_S:
            return True
        close_old_connections()
        if known is not None and _is_unchanged(known):
            self._remember(digest, known.user_id, known.password_hash)
            return True
        self._known.pop(digest, None)
        user = _sign_in(username, password, address)
        if user is None:
            return False
        self._remember(digest, user.pk, user.password)
        return True

    def _remember(self, digest: bytes, user_id: int, password_hash: str) -> None:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[digest] = _CheckedCredentials(
            user_id=user_id, password_hash=password_hash, at=time.monotonic()
        )


def _is_unchanged(known: _CheckedCredentials) -> bool:
    return User.objects.filter(
        pk=known.user_id, password=known.password_hash, is_active=True, is_superuser=True
    ).exists()


def _sign_in(username: str, password: str, address: str) -> User | None:
    if not is_storable(username):
        return None
    username = User.normalize_username(username)
    try:
        require_sign_in_allowed(username=username, address=address)
    except LimitReached:
        return None
    user = authenticate(username=username, password=password)
    if not isinstance(user, User) or not user.is_superuser:
        record_failed_sign_in(username=username, address=address)
        return None
    record_sign_in(user=user, address=address)
    return user
