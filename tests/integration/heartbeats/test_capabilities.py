"""Heartbeats and grants: an action runs by a grant that is in force when it runs."""

from __future__ import annotations

from datetime import UTC, datetime

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.authority.models import CapabilityGrant, CapabilityUse
from apps.authority.services.grants import grant_capability
from apps.tenants.scope import tenant_transaction
from arbor.authority.constraints import Constraints
from arbor.authority.grants import action_resource
from tests.factories.authority import allow
from tests.integration.heartbeats.conftest import last_heartbeat
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of


def verdicts(agent: Agent) -> list[str]:
    return [action["verdict"] for action in last_heartbeat(agent).actions]


def test_uses_of_a_grant_are_counted_over_heartbeats(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        allow(agent, "observe")
        grant = grant_capability(
            agent_id=agent.id,
            resource=action_resource("rest"),
            constraints=Constraints(max_uses=2),
            actor="test",
        )
    heartbeats.run(reply_of(actions=[action_of("rest")]))
    assert verdicts(agent) == ["run"]
    assert last_heartbeat(agent).actions[0]["capability_id"] == f"cap_{grant.id.hex}"
    heartbeats.run(reply_of(actions=[action_of("rest"), action_of("rest")]))
    assert verdicts(agent) == ["run", "not_authorized"]
    prompt = heartbeats.run(reply_of(actions=[action_of("rest")]))
    assert "- rest (" not in prompt
    with tenant_transaction(agent.tenant_id):
        assert CapabilityUse.objects.filter(capability=grant).count() == 2
        denied = AuditEvent.objects.filter(agent_id=agent.id, action="denied").latest("at")
    assert denied.detail["code"] == "used_up"
    assert denied.detail["tried"] == [f"cap_{grant.id.hex}"]


def test_a_forged_grant_is_refused_and_audited(heartbeats: HeartbeatRunner, agent: Agent) -> None:
    with tenant_transaction(agent.tenant_id):
        allow(agent, "rest")
        CapabilityGrant.objects.create(
            tenant_id=agent.tenant_id,
            agent=agent,
            resource=action_resource("observe"),
            issuer="authority:1",
            signature="ab" * 64,
            granted_by="eve",
            granted_at=datetime.now(UTC),
        )
    heartbeats.run(reply_of(actions=[action_of("observe"), action_of("rest")]))
    assert verdicts(agent) == ["not_authorized", "run"]
    assert last_heartbeat(agent).energy_end == last_heartbeat(agent).energy_start
    with tenant_transaction(agent.tenant_id):
        refused = AuditEvent.objects.get(agent_id=agent.id, action="request.refused")
    assert refused.detail["code"] == "bad_signature"
    assert "signature" in refused.message
