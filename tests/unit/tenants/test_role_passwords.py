"""New connections while the passwords of the roles change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg.errors import FinishedPGconn

from apps.tenants.postgresql.passwords import connect_as
from arbor.sealing import derive_secret, parse_master_key
from config.keys import KeySource

OLD, NEW = bytes(range(32)).hex(), bytes(range(1, 33)).hex()
ROLE, PURPOSE = "arbor_app", "postgres-role-app"


def password_of(key: str) -> str:
    return derive_secret(parse_master_key(key), PURPOSE).hex()


class Refused(psycopg.OperationalError):
    """A refusal after the server had asked for a password."""

    @property
    def pgconn(self) -> Any:
        return FinishedPGconn(used_password=True)


@dataclass
class Server:
    """A server with one password, and what happens after each attempt."""

    password: str
    after: Callable[[Server], None] = lambda _server: None
    attempts: list[str] = field(default_factory=list)

    def connect(self, password: str) -> str:
        self.attempts.append(password)
        accepted = password == self.password
        self.after(self)
        if not accepted:
            raise Refused(f"password authentication failed for user {ROLE} ({len(self.attempts)})")
        return "connected"


@pytest.fixture
def keys(settings: Any) -> Callable[[str, str], None]:
    """Return a function that sets the master keys, which the password of `ROLE` is derived from."""
    settings.ARBOR_DERIVED_ROLES = {ROLE: PURPOSE}

    def set_keys(current: str, other: str = "") -> None:
        settings.ARBOR_MASTER_KEYS = KeySource(current_text=current, other_text=other)

    return set_keys


def sign_in(server: Server) -> str:
    return connect_as(server.connect, role=ROLE, given=password_of(OLD))


@pytest.mark.parametrize(("stored", "attempts"), [(NEW, 1), (OLD, 2)])
def test_both_keys_sign_in(keys: Callable[..., None], stored: str, attempts: int) -> None:
    keys(NEW, OLD)
    server = Server(password_of(stored))
    assert sign_in(server) == "connected"
    assert len(server.attempts) == attempts


def test_a_password_may_change_between_attempts(keys: Callable[..., None]) -> None:
    keys(NEW, OLD)

    def change(server: Server) -> None:
        server.password = password_of(NEW)

    assert sign_in(Server(password_of(OLD), after=change)) == "connected"


def test_a_rotation_may_begin_between_attempts(keys: Callable[..., None]) -> None:
    keys(OLD)

    def rotate(_server: Server) -> None:
        keys(NEW, OLD)

    assert sign_in(Server(password_of(NEW), after=rotate)) == "connected"


def test_a_wrong_password_is_tried_once(keys: Callable[..., None]) -> None:
    keys(OLD)
    server = Server("other")
    with pytest.raises(Refused, match=r"\(1\)"):
        sign_in(server)
    assert server.attempts == [password_of(OLD)]


def test_a_server_that_is_away_is_tried_once(keys: Callable[..., None]) -> None:
    keys(NEW, OLD)
    attempts = []

    def connect(password: str) -> None:
        attempts.append(password)
        raise psycopg.OperationalError("connection refused")

    with pytest.raises(psycopg.OperationalError, match="connection refused"):
        connect_as(connect, role=ROLE, given=password_of(OLD))
    assert len(attempts) == 1


def test_another_role_signs_in_with_the_password_given_for_it(keys: Callable[..., None]) -> None:
    keys(NEW, OLD)
    server = Server("theirs")
    assert connect_as(server.connect, role="another", given="theirs") == "connected"
