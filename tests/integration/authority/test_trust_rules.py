"""Trust rules as rows."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.authority.models import ModeRule
from apps.authority.services.modes import set_mode
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.authority.modes import TrustMode
from tests.factories.agents import AgentFactory
from tests.support.races import in_tenant
from tests.support.threads import start_blocked

PREFIX = "arbor://actions/execute/recall"


@pytest.mark.parametrize("for_all", [True, False])
def test_a_rule_that_two_people_set_at_once_is_one_rule(tenant: Tenant, for_all: bool) -> None:
    with tenant_transaction(tenant.id):
        agent: Agent = AgentFactory(name="Ada")
    agent_id = None if for_all else agent.id
    with tenant_transaction(tenant.id):
        set_mode(agent_id=agent_id, prefix=PREFIX, mode=TrustMode.ASK, actor="ann")
        other = {"agent_id": agent_id, "prefix": PREFIX, "mode": TrustMode.BLOCK, "actor": "ben"}
        start_blocked(in_tenant(tenant.id, set_mode, **other))
    with tenant_transaction(tenant.id):
        rule = ModeRule.objects.get()
    assert (rule.mode, rule.set_by, rule.agent_id) == ("block", "ben", agent_id)
