"""The check of doctor that names agents whose status, schedule and identity disagree."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent, AgentEndorsement, HeartbeatSchedule, ScheduleState
from apps.fleet.disagreements import DisagreementKind, find_disagreements
from apps.fleet.identities import suspend_identity
from apps.fleet.lifecycle import pause_agent, start_agent
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from config.cli.checks.agents import check_agents
from config.cli.checks.finding import CheckVerdict
from tests.factories.agents import AgentFactory
from tests.integration.agents.conftest import ACTOR, MakeAgent


@pytest.fixture
def agent(make: MakeAgent, tenant: Tenant) -> Agent:
    """Return a started agent beside a new and a paused one."""
    make(name="New")
    paused, agent = make(name="Paused"), make(name="Vega")
    with tenant_transaction(tenant.id):
        for started in (paused, agent):
            start_agent(agent_id=started.id, actor=ACTOR)
        pause_agent(agent_id=paused.id, actor=ACTOR)
    return agent


def test_agents_that_changed_by_services_agree(agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        suspend_identity(agent_id=agent.id, reason="a test", actor=ACTOR)
    assert find_disagreements() == []
    assert check_agents().verdict is CheckVerdict.OK


@pytest.mark.parametrize(
    ("model", "key", "changes", "kind"),
    [
        (HeartbeatSchedule, "agent_id", {"state": ScheduleState.OFF}, DisagreementKind.NO_HEARTBEATS),
        (Agent, "id", {"status": AgentStatus.STOPPED}, DisagreementKind.NEEDLESS_HEARTBEATS),
        (AgentEndorsement, "agent_id", {"status": "revoked"}, DisagreementKind.NEEDLESS_HEARTBEATS),
    ],
)
def test_rows_that_disagree_are_named(
    agent: Agent, tenant: Tenant, model: Any, key: str, changes: dict[str, str], kind: DisagreementKind
) -> None:
    with tenant_transaction(tenant.id):
        model.objects.filter(**{key: agent.id}).update(**changes)
    (found,) = find_disagreements()
    assert (found.kind, found.agents, found.first) == (kind, 1, (f"{tenant.slug}/Vega",))


def test_agents_without_endorsement_are_named_with_a_remedy(agent: Agent, tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        # Not the hash of its key, so the factory gives it no identity.
        AgentFactory(name="Old", status=AgentStatus.CREATED, public_id="agent_" + "0" * 64)
    finding = check_agents()
    assert (finding.verdict, finding.remedy) == (CheckVerdict.WARN, "run `arbor prepare`")
    assert finding.detail == f"not endorsed: {tenant.slug}/Old"
