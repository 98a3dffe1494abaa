"""`arbor ops calls`: what maintenance did not get from models, and asking anew."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.calls.models import CallStatus, ExternalCall
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import ErrandFactory
from tests.integration.cli.conftest import Arbor


@pytest.fixture
def agents(tenant: Tenant) -> list[Agent]:
    """Return two agents; of each, a call of maintenance has failed."""
    with tenant_transaction(tenant.id):
        created = [AgentFactory.create(name=name) for name in ("Vega", "Altair")]
        for agent in created:
            ErrandFactory.create(agent=agent, ended_at=agent.created_at)
    return created


def test_failed_calls_are_listed_with_their_reason(arbor: Arbor, agents: list[Agent]) -> None:
    assert "ReplyInvalid: expected a JSON object" in arbor("ops", "calls").out
    (failed,) = arbor("ops", "calls", "--agent", "Vega", "--json").json["failed"]
    assert (failed["agent"], failed["purpose"], failed["about"]) == ("Vega", "summarize", "an episode")


def test_retrying_lets_them_be_made_anew(arbor: Arbor, agents: list[Agent], tenant: Tenant) -> None:
    assert arbor("ops", "calls", "--agent", "Vega", "--retry", "--json").json["retried"] == 1
    assert arbor("ops", "calls", "--json").json["failed"][0]["agent"] == "Altair"
    assert "1 failed calls are retried" in arbor("ops", "calls", "--retry").out
    assert "No call of maintenance has failed." in arbor("ops", "calls").out
    with tenant_transaction(tenant.id):
        assert {call.status for call in ExternalCall.objects.all()} == {CallStatus.RETRIED}
