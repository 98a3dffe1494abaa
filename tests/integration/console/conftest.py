"""A tenant with one row of each model, clients of its members, and crawls of all pages."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.tenants.models import Role, Tenant, User
from apps.tenants.services import add_member, create_tenant
from tests.factories.heartbeats import ProcessFactory
from tests.factories.users import UserFactory
from tests.support.console import World, sign_in
from tests.support.console_crawls import OwnerCrawl, ViewerCrawl, crawl_as_owner, crawl_as_viewer
from tests.support.console_rows import make_world
from tests.support.database import DatabaseCleaner


@pytest.fixture(autouse=True, scope="session")
def _lists_are_registered() -> None:
    """Load the addresses, which registers the lists that tests go through."""
    reverse("admin:index")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Silence the log of refused requests, which are expected here and whose tracebacks take time."""
    for name in ("django.request", "django.security"):
        caplog.set_level("CRITICAL", logger=name)


@pytest.fixture(scope="session")
def saved_world(emptier: DatabaseCleaner, django_db_blocker: Any) -> bytes:
    """Save the rows of a tenant and of its world, which take a tenth of a second to create; return the pickled world."""
    with django_db_blocker.unblock():
        tenant = create_tenant(slug="acme", name="Acme")
        emptier.save("tenant")
        ProcessFactory()
        world = make_world(tenant)
        emptier.save("world", beside="tenant")
        emptier.empty()
    return pickle.dumps(world)


@pytest.fixture
def tenant(database: None, emptier: DatabaseCleaner, saved_world: bytes) -> Tenant:
    """Return the tenant of the saved world, without its rows."""
    emptier.insert("tenant")
    saved: World = pickle.loads(saved_world)
    return saved.tenant


@pytest.fixture
def world(tenant: Tenant, emptier: DatabaseCleaner, saved_world: bytes) -> World:
    emptier.insert("world")
    saved: World = pickle.loads(saved_world)
    return saved


@pytest.fixture
def other_world(other_tenant: Tenant) -> World:
    return make_world(other_tenant, text="globex secret")


@pytest.fixture
def as_role(tenant: Tenant) -> Callable[[Role], Client]:
    """Return a function that signs in a new member of the tenant with a role."""

    def sign_in_as(role: Role) -> Client:
        user = UserFactory(username=f"{role}-person")
        add_member(tenant=tenant, user=user, role=role)
        return sign_in(user)

    return sign_in_as


@pytest.fixture
def viewer(as_role: Callable[[Role], Client]) -> Client:
    return as_role(Role.VIEWER)


@pytest.fixture
def operator(as_role: Callable[[Role], Client]) -> Client:
    return as_role(Role.OPERATOR)


@pytest.fixture
def owner(as_role: Callable[[Role], Client]) -> Client:
    return as_role(Role.OWNER)


@pytest.fixture
def root(database: None) -> Client:
    """Sign in a user who runs the installation and is a member of no tenant."""
    return sign_in(UserFactory(username="root", is_superuser=True))


@pytest.fixture
def ann(world: World) -> User:
    """Return a viewer of the tenant, who is not signed in."""
    user: User = UserFactory(username="ann")
    add_member(tenant=world.tenant, user=user, role=Role.VIEWER)
    return user


@pytest.fixture
def chief(world: World) -> Client:
    """Sign in an owner of the tenant who runs the installation too."""
    user = UserFactory(username="chief", is_superuser=True)
    add_member(tenant=world.tenant, user=user, role=Role.OWNER)
    return sign_in(user)


@pytest.fixture(scope="session")
def viewer_crawl(emptier: DatabaseCleaner, django_db_blocker: Any) -> ViewerCrawl:
    """Return every page as a viewer sees it; the database is empty again."""
    with django_db_blocker.unblock():
        crawled = crawl_as_viewer()
        emptier.empty()
    return crawled


@pytest.fixture(scope="session")
def owner_crawl(viewer_crawl: ViewerCrawl, emptier: DatabaseCleaner, django_db_blocker: Any) -> OwnerCrawl:
    """Return every page as an owner sees it; the earlier crawl has filled the caches of the process."""
    with django_db_blocker.unblock():
        crawled = crawl_as_owner()
        emptier.empty()
    return crawled
