"""`arbor doctor` looks at everything: one check after the other, those in the database only when it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.db import DatabaseError

from config.cli.checks.database import (
    check_clock,
    check_database,
    check_migrations,
    check_role,
    check_vectors,
)
from config.cli.checks.finding import Finding, Verdict, fail
from config.cli.checks.interpreter import check_interpreter
from config.cli.checks.keys import check_keys, check_master_key
from config.cli.checks.models import check_backlog, check_embedder, check_minds, check_model
from config.cli.checks.processes import (
    check_beat,
    check_broker,
    check_maintenance,
    check_outbox,
    check_workers,
)
from config.cli.checks.web import check_web


def diagnose() -> Iterator[Finding]:
    """Look at everything, one check after the other; what needs the database is left out when it is away."""
    yield check_interpreter()
    yield check_master_key()
    database = check_database()
    yield database
    if database.verdict is Verdict.OK:
        for check in _IN_DATABASE:
            yield from _guarded(check)
    yield check_broker()
    yield check_model()
    yield check_embedder()
    yield check_web()


def _guarded(check: Callable[[], Finding]) -> Iterator[Finding]:
    """Run a check; a table that is not there yet is the migrations' finding, not a crash."""
    try:
        yield check()
    except DatabaseError as error:
        name = check.__name__.removeprefix("check_").replace("_", " ")
        yield fail(name, str(error).strip().splitlines()[0], "run `arbor prepare`")


_IN_DATABASE = (
    check_migrations,
    check_role,
    check_vectors,
    check_clock,
    check_keys,
    check_minds,
    check_backlog,
    check_beat,
    check_workers,
    check_maintenance,
    check_outbox,
)
