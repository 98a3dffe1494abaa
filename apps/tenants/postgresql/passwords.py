"""Sign in to the database with the passwords of all open master keys, since a rotation changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg

from apps.tenants.keys import role_passwords


def connect_as[C](connect: Callable[[str], C], *, role: str, given: str) -> C:
    """Connect with the first password that the server accepts: those of the open keys, then the given one.

    Where there are several, or where they have changed, all are tried a second time: during the first round, a rotation may
    replace the role's password by one that was refused already. Raises the first refusal.
    """
    refusal: psycopg.OperationalError | None = None
    passwords = _passwords(role, given)
    for _ in range(2):
        for password in passwords:
            try:
                return connect(password)
            except psycopg.OperationalError as error:
                if not is_refused_password(error):
                    raise
                refusal = refusal or error
        before, passwords = passwords, _passwords(role, given)
        if passwords == before and len(passwords) == 1:
            break
    assert refusal is not None, "the given password is always tried"
    raise refusal


def _passwords(role: str, given: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*role_passwords(role), given)))


def is_refused_password(error: Exception) -> bool:
    """Return whether a connection failed after the server had asked for a password."""
    return bool(getattr(getattr(error, "pgconn", None), "used_password", False))


class RoleConnection(psycopg.Connection[Any]):
    """A connection that tries all passwords of its role, because a rotation of keys may change them at any time."""

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Any:
        """Connect with a password of the role."""

        def connect(password: str) -> psycopg.Connection[Any]:
            return super(RoleConnection, cls).connect(conninfo, **{**kwargs, "password": password})

        return connect_as(connect, role=str(kwargs.get("user", "")), given=str(kwargs.get("password", "")))
