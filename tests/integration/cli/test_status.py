"""`arbor status` while `arbor up` prepares the database, and its counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Never

import pytest
from django.db import DatabaseError, DataError, IntegrityError, OperationalError, ProgrammingError

from apps.contacts.services import outbox
from apps.memories.services.jobs import health
from config.cli.installation import status
from config.environment import data_dir
from config.supervisor.run_folder import RunFolder, write_private
from tests.integration.cli.conftest import Arbor


@pytest.fixture
def run() -> Iterator[RunFolder]:
    """Return the folder of an installation whose supervisor, this process, has just started."""
    folder = RunFolder(data_dir())
    folder.make()
    folder.write_state(parts=[])
    yield folder
    folder.clear()
    folder.prepared_file.unlink(missing_ok=True)


def break_database(monkeypatch: pytest.MonkeyPatch, error: DatabaseError) -> None:
    def fail() -> Never:
        raise error

    monkeypatch.setattr(status, "fleet_status", fail)


@pytest.mark.parametrize(
    "error",
    [
        OperationalError('password authentication failed for user "arbor_ops"'),
        ProgrammingError('relation "heartbeats_heartbeat" does not exist'),
    ],
)
def test_the_status_says_that_the_database_is_being_prepared(
    arbor: Arbor, run: RunFolder, monkeypatch: pytest.MonkeyPatch, error: DatabaseError
) -> None:
    break_database(monkeypatch, error)
    ran = arbor("status")
    assert (ran.code, ran.err) == (
        1,
        "arbor: `arbor up` still prepares the database; try again in a moment\n",
    )


@pytest.mark.parametrize("error", [IntegrityError("duplicate key value"), DataError("out of range")])
def test_wrong_data_is_a_bug_also_during_the_preparation(
    arbor: Arbor, run: RunFolder, monkeypatch: pytest.MonkeyPatch, error: DatabaseError
) -> None:
    break_database(monkeypatch, error)
    with pytest.raises(type(error)):
        arbor("status")


def test_a_database_that_fails_after_its_preparation_is_named(
    arbor: Arbor, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_private(run.prepared_file, {})
    break_database(monkeypatch, OperationalError("connection refused"))
    ran = arbor("status")
    assert (ran.code, "still prepares" in ran.err) == (1, False)
    break_database(monkeypatch, ProgrammingError('relation "heartbeats_heartbeat" does not exist'))
    with pytest.raises(ProgrammingError):
        arbor("status")


def test_counts_that_stopped_at_their_limit_say_so(arbor: Arbor, monkeypatch: pytest.MonkeyPatch) -> None:
    for limits in (health, outbox):
        monkeypatch.setattr(limits, "MAX_COUNTED", 0)
    shown = " ".join(arbor("status").out.split())
    assert "0 or more unembedded memories, 0 or more expired memories, 0 pending calls" in shown
    assert "outbox 0 or more waiting" in shown
