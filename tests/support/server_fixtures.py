"""The fixtures of a throw-away PostgreSQL: one server for all tests of a process, whatever their folders.

A plugin that the folders' `conftest.py` load: each copy of a fixture would start a server of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connections

from apps.tenants.models import Tenant
from apps.tenants.services import create_tenant
from config.servers.postgres import EmbeddedPostgres
from tests.support.cluster import migrated_server, set_serving_passwords
from tests.support.database import DatabaseCleaner, use_database


@pytest.fixture(scope="session")
def postgres(django_db_blocker: Any) -> Iterator[EmbeddedPostgres]:
    """Return a running throw-away server on a migrated cluster."""
    with django_db_blocker.unblock():
        server = migrated_server()
    with server:
        yield server


@pytest.fixture(scope="session")
def django_db_setup(postgres: EmbeddedPostgres, django_db_blocker: Any) -> Iterator[None]:
    """Connect as the application's roles: tests never run as a superuser or an owner."""
    use_database(postgres.owner_url)
    set_serving_passwords(postgres)
    with django_db_blocker.unblock():
        yield
        connections.close_all()


@pytest.fixture(scope="session")
def superuser(django_db_setup: None, postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection[Any]]:
    """Return a session of the superuser."""
    with psycopg.connect(postgres.superuser_url, autocommit=True) as session:
        yield session


@pytest.fixture(scope="session")
def emptier(django_db_setup: None, postgres: EmbeddedPostgres) -> Iterator[DatabaseCleaner]:
    """Return the service that empties the database, in a session of its own, whose settings no test changes."""
    with psycopg.connect(postgres.superuser_url, autocommit=True) as session:
        yield DatabaseCleaner(session)


@pytest.fixture
def database(emptier: DatabaseCleaner, django_db_blocker: Any) -> Iterator[None]:
    """Open the database to the test through each role, and empty it afterwards: tests commit, as the product does."""
    with django_db_blocker.unblock():
        yield
        emptier.empty()


@pytest.fixture
def tenant(database: None) -> Tenant:
    """Return a tenant for this test alone."""
    return create_tenant(slug="acme", name="Acme")
