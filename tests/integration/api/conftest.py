"""Fixtures of the API's tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from apps.tenants.models import Role, Tenant
from tests.support.api import API_SETTINGS, Caller, caller_of


@pytest.fixture(autouse=True)
def _as_the_api(database: None) -> Iterator[None]:
    """Serve the addresses of the API's process."""
    with override_settings(**API_SETTINGS):
        yield


@pytest.fixture
def owner(tenant: Tenant) -> Caller:
    """Return a program with an owner's token."""
    return caller_of(tenant, Role.OWNER)


@pytest.fixture
def operator(tenant: Tenant) -> Caller:
    """Return a program with an operator's token."""
    return caller_of(tenant, Role.OPERATOR)


@pytest.fixture
def viewer(tenant: Tenant) -> Caller:
    """Return a program with a viewer's token."""
    return caller_of(tenant, Role.VIEWER)


@pytest.fixture
def outsider(other_tenant: Tenant) -> Caller:
    """Return a program with an owner's token of another tenant."""
    return caller_of(other_tenant, Role.OWNER)


@pytest.fixture
def vega(owner: Caller, templates: None) -> dict[str, Any]:
    """Create the agent Vega, and return it."""
    response = owner.post("/agents", {"name": "Vega", "template": "Scout", "start": True})
    assert response.status_code == 201, response.content
    created: dict[str, Any] = response.json()
    return created
