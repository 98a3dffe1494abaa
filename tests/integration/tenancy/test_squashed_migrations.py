"""Squashed migrations: a database with all replaced ones needs none, one with a part of them is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from apps.tenants.scope import OWNER

type Node = tuple[str, str]


@pytest.fixture
def replaced(database: None) -> Iterator[list[Node]]:
    """Record the replaced migrations instead of the squashed ones, until the test ends."""
    connection = connections[OWNER]
    squashed = {
        node: migration.replaces
        for node, migration in MigrationLoader(connection).disk_migrations.items()
        if migration.replaces
    }
    with transaction.atomic(using=OWNER):
        recorder = MigrationRecorder(connection)
        for node, nodes in squashed.items():
            recorder.record_unapplied(*node)
            for old in nodes:
                recorder.record_applied(*old)
        yield [old for nodes in squashed.values() for old in nodes]
        transaction.set_rollback(True, using=OWNER)


def test_a_database_with_all_replaced_migrations_needs_none(replaced: list[Node]) -> None:
    executor = MigrationExecutor(connections[OWNER])

    assert len(replaced) > 50
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_a_database_with_a_part_of_the_migrations_is_refused(replaced: list[Node]) -> None:
    MigrationRecorder(connections[OWNER]).record_unapplied("heartbeats", "0013_labels")

    with pytest.raises(CommandError, match="a version of Arbor that still contains them"):
        call_command("migrate", verbosity=0)
