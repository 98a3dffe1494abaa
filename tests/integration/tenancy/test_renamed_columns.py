"""Migrations that rename columns: they rewrite no row and build no index anew."""

from __future__ import annotations

import re

import pytest
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from apps.tenants.scope import OWNER

RENAMING = [
    ("agents", "0003_heartbeat_columns", 6),
    ("authority", "0002_round_trips", 1),
    ("calls", "0002_heartbeat_columns", 1),
    ("heartbeats", "0002_round_trips", 1),
    ("selves", "0002_rejected_proposals", 1),
    ("selves", "0003_heartbeat_numbers", 3),
    ("tenants", "0002_heartbeat_columns", 1),
]


@pytest.mark.parametrize(("app", "name", "renames"), RENAMING)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_migration_of_names_only_renames(
    database: None, app: str, name: str, renames: int, backwards: bool
) -> None:
    loader = MigrationLoader(connections[OWNER], replace_migrations=False)
    collected = loader.collect_sql([(loader.get_migration(app, name), backwards)])
    statements = [line for line in collected if not re.match(r"--|BEGIN|COMMIT|\s*$", line)]
    assert len(statements) == renames
    for statement in statements:
        assert re.match(r"ALTER TABLE \S+ RENAME COLUMN|ALTER INDEX \S+ RENAME TO", statement), statement
