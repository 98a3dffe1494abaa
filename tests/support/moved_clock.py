"""A clock that a test moves forward, in this process and in the database: days pass in seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import psycopg
import pytest
from django.db import connections
from psycopg.sql import SQL, Identifier

from apps.tenants.scope import SERVING

#: Packages whose clock is moved, and Django's, which they use.
_MOVED = ("arbor", "apps", "workers", "config", "django.utils.timezone")
#: Functions that hide those of pg_catalog, which Arbor's statements name without the schema.
_FUNCTIONS = ("now", "statement_timestamp", "clock_timestamp", "transaction_timestamp")


class MovedClock:
    """The offset of the moved time from the real one."""

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        self._session = session
        self.offset = timedelta()

    def now(self) -> datetime:
        """Return the moved time."""
        return datetime.now(UTC) + self.offset

    def advance(self, by: timedelta) -> None:
        """Move the clock; a negative span does nothing."""
        if by > timedelta():
            self.offset += by
            self._session.execute("UPDATE moved_clock.clock SET moved = %s", [self.offset])

    def advance_to(self, moment: datetime) -> None:
        """Move the clock to a time, if it is in the future."""
        self.advance(moment - self.now())


@contextmanager
def moved_clock(session: psycopg.Connection[Any], patch: pytest.MonkeyPatch) -> Iterator[MovedClock]:
    """Yield a clock that can be moved; `session` is a session of the superuser."""
    clock = MovedClock(session)
    _install(session)
    _patch_process(clock, patch)
    try:
        yield clock
    finally:
        _uninstall(session)


def _install(session: psycopg.Connection[Any]) -> None:
    session.execute("CREATE SCHEMA moved_clock")
    session.execute("CREATE TABLE moved_clock.clock AS SELECT interval '0' AS moved")
    for name in _FUNCTIONS:
        session.execute(
            SQL(
                "CREATE FUNCTION moved_clock.{name}() RETURNS timestamptz LANGUAGE sql STABLE"
                " AS 'SELECT pg_catalog.{name}() + (SELECT moved FROM moved_clock.clock)'"
            ).format(name=Identifier(name))
        )
    session.execute(
        "GRANT USAGE ON SCHEMA moved_clock TO PUBLIC; GRANT SELECT ON moved_clock.clock TO PUBLIC"
    )
    _set_search_path(session, SQL("SET search_path = moved_clock, pg_catalog, public"))


def _uninstall(session: psycopg.Connection[Any]) -> None:
    _set_search_path(session, SQL("RESET search_path"))
    session.execute("DROP SCHEMA moved_clock CASCADE")


def _set_search_path(session: psycopg.Connection[Any], change: SQL) -> None:
    """Change the search path of the serving roles; their sessions get it when they connect again."""
    for alias in SERVING:
        role = Identifier(connections[alias].settings_dict["USER"])
        session.execute(SQL("ALTER ROLE {} {}").format(role, change))
        connections[alias].close()


def _patch_process(clock: MovedClock, patch: pytest.MonkeyPatch) -> None:
    """Replace `datetime` in the modules by a class whose `now` is moved; its instances are those of the real class."""

    class Instances(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime)

    class MovedDatetime(datetime, metaclass=Instances):
        def __new__(cls, *parts: Any, **named: Any) -> Any:
            return datetime(*parts, **named)  # noqa: DTZ001 (as it was called)

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Any:
            return datetime.now(tz) + clock.offset

    for name, module in list(sys.modules.items()):
        if name.startswith(_MOVED) and getattr(module, "datetime", None) is datetime:
            patch.setattr(module, "datetime", MovedDatetime)
