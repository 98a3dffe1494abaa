"""A tenant with templates, and agents made from them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.agents.models import Agent
from apps.fleet.creation import create_agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction

ACTOR = "cli:tests"

type MakeAgent = Callable[..., Agent]


@pytest.fixture
def make(tenant: Tenant, templates: None) -> MakeAgent:
    """Return a function that makes an agent of the tenant."""

    def make_agent(name: str = "Vega", template_name: str = "Scout", **details: object) -> Agent:
        with tenant_transaction(tenant.id):
            return create_agent(name=name, template_name=template_name, actor=ACTOR, **details)  # type: ignore[arg-type]

    return make_agent
