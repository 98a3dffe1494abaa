"""A real PostgreSQL for the tests that need one: thrown away afterwards, served under the application's own role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connections

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


@pytest.fixture
def database(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Let the test use the database through every role, and empty it afterwards: tests commit, as the product does."""
    with django_db_blocker.unblock():
        yield
        _empty()


def _empty() -> None:
    # As the owner, because the serving roles may not truncate; their sessions end first and hold no locks.
    for alias in (APP, OPS):
        connections[alias].close()
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(quote_ident(relname), ', ') FROM pg_class WHERE relkind = 'r'"
            " AND relnamespace = 'public'::regnamespace AND relname NOT IN"
            " ('django_migrations', 'django_content_type', 'auth_permission')"
        )
        cursor.execute(f"TRUNCATE {cursor.fetchone()[0]}")


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
