"""Squashed migrations: a database with all replaced ones needs none, one with a part of them is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from apps.tenants.checks import find_table_faults
from apps.tenants.scope import OWNER
from tests.integration.tenancy.test_protection import CATALOG

type Node = tuple[str, str]

#: A migration of a version before those that are replaced.
STILL_EARLIER = ("tenants", "0001_initial")


@pytest.fixture
def replaced(database: None) -> Iterator[list[Node]]:
    """Record the replaced migrations instead of the squashed ones, until the test ends."""
    connection = connections[OWNER]
    squashed = {
        node: migration.replaces
        for node, migration in MigrationLoader(connection).disk_migrations.items()
        if migration.replaces
    }
    recorder = MigrationRecorder(connection)
    before = recorder.applied_migrations().keys()
    replaced = [old for nodes in squashed.values() for old in nodes]
    for node in squashed:
        recorder.record_unapplied(*node)
    for old in {*replaced} - before:
        recorder.record_applied(*old)
    yield replaced
    # A command may have closed the connection of the recorder.
    recorder = MigrationRecorder(connections[OWNER])
    after = recorder.applied_migrations().keys()
    for node in after - before:
        recorder.record_unapplied(*node)
    for node in before - after:
        recorder.record_applied(*node)


def test_a_database_with_all_replaced_migrations_needs_none(replaced: list[Node]) -> None:
    executor = MigrationExecutor(connections[OWNER])

    assert len(replaced) > 50
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_migrating_such_a_database_changes_only_its_records(replaced: list[Node]) -> None:
    def read_catalog() -> list[Any]:
        with connections[OWNER].cursor() as cursor:
            cursor.execute(CATALOG)
            return list(cursor.fetchall())

    before = read_catalog()
    call_command("migrate", verbosity=0)

    assert len(before) > 500
    assert read_catalog() == before
    assert find_table_faults() == []
    loader = MigrationLoader(connections[OWNER])
    squashed = {node for node, migration in loader.disk_migrations.items() if migration.replaces}
    assert squashed <= MigrationRecorder(connections[OWNER]).applied_migrations().keys()


def test_a_database_with_a_part_of_the_migrations_is_refused(replaced: list[Node]) -> None:
    MigrationRecorder(connections[OWNER]).record_unapplied("heartbeats", "0007_not_done")

    with pytest.raises(CommandError, match="a version of Arbor that still contains them"):
        call_command("migrate", verbosity=0)


def test_a_first_migration_that_was_interrupted_is_continued(replaced: list[Node]) -> None:
    recorder = MigrationRecorder(connections[OWNER])
    for name in ("0003_percepts_by_heartbeat", "0003_heartbeat_columns"):
        recorder.record_unapplied("agents", name)
    planned = StringIO()

    call_command("migrate", plan=True, stdout=planned)

    assert re.findall(r"^\w+\.\w+$", planned.getvalue(), re.MULTILINE) == [
        "agents.0002_references",
        "agents.0003_heartbeat_columns",
    ]


def test_a_database_of_a_still_earlier_version_is_refused(replaced: list[Node]) -> None:
    recorder = MigrationRecorder(connections[OWNER])
    for old in replaced:
        recorder.record_unapplied(*old)
    recorder.record_applied(*STILL_EARLIER)

    with pytest.raises(CommandError, match="lacks 0001_squashed"):
        call_command("migrate", verbosity=0)
