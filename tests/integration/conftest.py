"""A real PostgreSQL for the tests that need one: thrown away afterwards, served under the application's own role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections
from psycopg.sql import SQL, Identifier

from apps.tenants.models import Tenant
from apps.tenants.scope import APP, OPS, tenant_transaction
from apps.tenants.services import create_tenant
from config.environment import env, with_user
from config.servers.postgres import EmbeddedPostgres

ALIASES = (APP, OPS, "owner")


def use_database(owner_url: str) -> None:
    """Point the three roles' connections at the database; one that is open leads to another server."""
    for alias in ALIASES:
        connections[alias].close()
        settings = connections.settings[alias]
        url = owner_url
        if alias != "owner":
            url = with_user(owner_url, settings["USER"], settings["PASSWORD"])
        found = env.db_url_config(url)
        settings.update({key: found[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """Return a running throw-away server."""
    with EmbeddedPostgres.temporary() as server:
        yield server


@pytest.fixture(scope="session")
def django_db_setup(postgres: EmbeddedPostgres, django_db_blocker: Any) -> Iterator[None]:
    """Migrate as the owner; tests then run as the application's role (never as a superuser or an owner)."""
    use_database(postgres.owner_url)
    with django_db_blocker.unblock():
        call_command("migrate", verbosity=0)
        yield
        connections.close_all()


@pytest.fixture(scope="session")
def cleaner(django_db_setup: None, postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    """Return a session that may delete everything: past row security, privileges and references."""
    with psycopg.connect(postgres.superuser_url, autocommit=True) as session:
        session.execute("SET session_replication_role = replica")
        yield session


@pytest.fixture
def database(cleaner: psycopg.Connection[Any], django_db_blocker: Any) -> Iterator[None]:
    """Let the test use the database through every role, and empty it afterwards: tests commit, as the product does."""
    with django_db_blocker.unblock():
        yield
        _empty(cleaner)


def _empty(cleaner: psycopg.Connection[Any]) -> None:
    # Their sessions end first and hold no locks.
    for alias in (APP, OPS):
        connections[alias].close()
    # TRUNCATE makes a file anew for each table and index, six hundred of them; few tables have rows.
    ((tables,),) = cleaner.execute(
        "SELECT array_agg(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        " AND pg_relation_size(oid) > 0 AND relname NOT IN"
        " ('django_migrations', 'django_content_type', 'auth_permission')"
    ).fetchall()
    if tables:
        cleaner.execute(SQL("; ").join(SQL("DELETE FROM {}").format(Identifier(name)) for name in tables))
    if "memories_memory" in (tables or ()):
        # Plans go by its size, and index-only scans by what vacuum knows.
        cleaner.execute("VACUUM memories_memory")


@pytest.fixture
def tenant(database: None) -> Tenant:
    """Return a tenant of its own for the test."""
    return create_tenant(slug="acme", name="Acme")


@pytest.fixture
def other_tenant(database: None) -> Tenant:
    """Return a second tenant."""
    return create_tenant(slug="globex", name="Globex")


@pytest.fixture
def in_tenant(tenant: Tenant) -> Iterator[UUID]:
    """Run the test inside the tenant's transaction."""
    with tenant_transaction(tenant.id):
        yield tenant.id
