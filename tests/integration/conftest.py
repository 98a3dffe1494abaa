"""A real, throw-away PostgreSQL, used under the application's own roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connections
from whitenoise.middleware import WhiteNoiseMiddleware

from apps.agents.services.templates import seed_builtin_templates
from apps.memories.services.embedding import embedding
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from config.servers.postgres import EmbeddedPostgres
from tests.support.cluster import migrated_server, set_serving_passwords
from tests.support.database import DatabaseCleaner, prepare_statements, use_database
from tests.support.embedders import RemoteEmbedder, forget_vectors
from tests.support.provider_server import ProviderServer, provider_server

#: The folders with tests of processes that do not prepare statements.
UNPREPARED = ("cli", "console", "tenancy")


@pytest.fixture(autouse=True, scope="session")
def _passwords_are_hashed_in_few_rounds() -> Iterator[None]:
    """Hash passwords by the algorithm in force, without the million rounds that slow down guessing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PBKDF2PasswordHasher, "iterations", 1000)
        yield


@pytest.fixture(autouse=True, scope="session")
def _static_files_are_found_once() -> Iterator[None]:
    """Find the static files once: each of Django's test clients would find them again."""
    find, found = WhiteNoiseMiddleware.add_files_from_finders, dict[str, Any]()

    def find_once(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", find_once)
        yield


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


@pytest.fixture(autouse=True, scope="module")
def _statements_are_prepared_as_in_production(request: pytest.FixtureRequest) -> None:
    """Prepare statements in all tests but those of the processes that do not."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    prepare_statements(prepared=folder not in UNPREPARED)


@pytest.fixture
def unprepared() -> Iterator[None]:
    """Prepare no statements, so that the test can explain them with their values."""
    prepare_statements(prepared=False)
    yield
    prepare_statements(prepared=True)


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
def templates(database: None, emptier: DatabaseCleaner) -> None:
    """Store the built-in templates."""
    emptier.fill("agents_builtintemplate", seed_builtin_templates)


@pytest.fixture
def tenant(database: None) -> Tenant:
    """Return a tenant for this test alone."""
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


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteEmbedder]:
    """Replace the installation's embedder by a remote one, with empty caches."""
    embedder = RemoteEmbedder()
    monkeypatch.setattr(embedding, "connect_embedder", lambda *_, **__: embedder)
    embedding.embedder_for.cache_clear()
    forget_vectors(monkeypatch)
    yield embedder
    embedding.embedder_for.cache_clear()


@pytest.fixture
def provider(settings: Any) -> Iterator[ProviderServer]:
    """Return a running server of a model provider, which the settings permit."""
    settings.ARBOR_MODEL_ALLOW_PRIVATE = True
    with provider_server() as server:
        yield server
