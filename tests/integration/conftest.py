"""A real, throw-away PostgreSQL, used under the application's own roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from whitenoise.middleware import WhiteNoiseMiddleware

from apps.agents.services.templates import seed_builtin_templates
from apps.memories.services.embedding import embedding
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from tests.support.database import DatabaseCleaner, prepare_statements
from tests.support.embedders import RemoteEmbedder, forget_vectors
from tests.support.provider_server import ProviderServer, provider_server

#: The folders with tests of processes that do not prepare statements.
UNPREPARED = ("cli", "console", "tenancy")


def pytest_configure(config: pytest.Config) -> None:
    """Load the fixtures of the server, once for all folders."""
    config.pluginmanager.import_plugin("tests.support.server_fixtures")


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


@pytest.fixture
def templates(database: None, emptier: DatabaseCleaner) -> None:
    """Store the built-in templates."""
    emptier.fill("agents_builtintemplate", seed_builtin_templates)


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
