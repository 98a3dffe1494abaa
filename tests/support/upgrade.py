"""A database of an earlier version of the tables, protected as that version protected it, to be migrated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.apps.registry import Apps
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from psycopg.sql import SQL, Identifier

from apps.tenants import policies, protection
from apps.tenants.checks import tenant_models
from apps.tenants.protection import protect
from apps.tenants.scope import OWNER
from config.servers.postgres import OWNER as OWNER_ROLE
from config.servers.postgres import EmbeddedPostgres
from tests.support.database import use_database

#: The rows of each table, each as JSON, in order.
type Rows = dict[str, list[dict[str, Any]]]


@contextmanager
def empty_database(postgres: EmbeddedPostgres, *, name: str) -> Iterator[str]:
    """Create a database beside that of the tests, connect every role to it, and delete it at the end."""
    database = Identifier(name)
    with psycopg.connect(postgres.superuser_url, autocommit=True) as session:
        session.execute(SQL("CREATE DATABASE {} OWNER {}").format(database, Identifier(OWNER_ROLE)))
        try:
            use_database(postgres.url(user=OWNER_ROLE, database=name))
            yield postgres.url(user="postgres", database=name)
        finally:
            use_database(postgres.owner_url)
            session.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(database))


def migrate_to(*targets: tuple[str, str]) -> Apps:
    """Apply the migrations up to the targets and return the models of that version."""
    executor = MigrationExecutor(connections[OWNER])
    state = executor.migrate(list(targets))
    return state.apps


def protect_as(earlier: Apps) -> None:
    """Protect the tables of an earlier version as that version did, privileges aside."""
    with pytest.MonkeyPatch.context() as patch:
        models = [
            earlier.get_model(model._meta.label)
            for model in tenant_models()
            if model._meta.model_name in earlier.all_models[model._meta.app_label]
        ]
        for module in (protection, policies):
            patch.setattr(module, "tenant_models", lambda: iter(models))
        patch.setattr(policies, "apps", earlier)
        protect()


def read_rows(session: psycopg.Connection[Any]) -> Rows:
    """Return all rows of all tables but Django's own, by a session of the superuser."""
    names = session.execute(
        "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        " AND relname !~ '^(django|auth)_' ORDER BY 1"
    ).fetchall()
    return {
        name: [
            row
            for (row,) in session.execute(
                SQL("SELECT to_jsonb(t) FROM {} t ORDER BY t::text").format(Identifier(name))
            )
        ]
        for (name,) in names
    }
