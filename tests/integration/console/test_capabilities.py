"""The page of an agent's capabilities."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.authority.models import CapabilityGrant, ModeRule
from apps.authority.services.grants import grant_to_all
from apps.authority.services.modes import set_mode
from apps.tenants.scope import tenant_transaction
from arbor.authority.modes import TrustMode
from tests.factories.agents import AgentFactory
from tests.support.console import World, list_of, page_of, page_text


def _address(world: World) -> str:
    return reverse("admin:agent-capabilities", args=[world.agent.id])


def test_a_viewer_reads_explanations_and_grants_nothing(viewer: Client, world: World) -> None:
    text = viewer.get(_address(world), {"resource": "reach_out_public"}).content.decode()
    assert "It may not use arbor://actions/execute/reach_out_public now" in text
    assert "It may use" in viewer.get(_address(world), {"resource": "recall"}).content.decode()
    assert "unknown domain" in viewer.get(_address(world), {"resource": "arbor://x/y"}).content.decode()
    assert 'name="act"' not in text
    assert viewer.post(_address(world), {"act": "grant", "resource": "observe"}).status_code == 403


def test_grants_and_rules_of_all_agents_are_listed(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        rows = grant_to_all(actions=["recall"], actor="cli:ann")
        rule = set_mode(agent_id=None, prefix="arbor://actions/execute", mode=TrustMode.ASK, actor="cli:ann")
    for model in (CapabilityGrant, ModeRule):
        assert "all agents" in page_text(viewer, list_of(model))
    assert "in force<" in page_text(viewer, list_of(CapabilityGrant))
    for row in (*rows, rule):
        page_text(viewer, page_of(row))


def test_an_operator_grants_delegates_and_revokes(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        lyra: Agent = AgentFactory(name="Lyra")
    address = _address(world)
    granted = operator.post(
        address,
        {
            "act": "grant",
            "resource": "arbor://fs/read/docs",
            "days": "2",
            "uses": "3",
            "hours": "00:00-23:59",
        },
        follow=True,
    )
    assert "arbor://fs/read/docs is granted." in granted.content.decode()
    with tenant_transaction(world.tenant.id):
        grant = CapabilityGrant.objects.get(agent_id=world.agent.id, resource="arbor://fs/read/docs")
    assert set(grant.constraints or ()) == {"expires_at", "max_uses", "window"}
    act = {"capability": str(grant.id)}
    delegated = operator.post(address, {"act": "delegate", "to": lyra.name, **act}, follow=True)
    assert "is delegated." in delegated.content.decode()
    assert 'ar-good">in force<' in delegated.content.decode()
    for invalid in (
        {"act": "delegate", "to": "Nobody", **act},
        {"act": "revoke", "reason": " ", **act},
        {"act": "grant", "resource": "arbor://x/y"},
        {"act": "grant", "resource": " "},
        {"act": "grant", "resource": "observe", "days": "9999999"},
    ):
        assert "Nothing was done" in operator.post(address, invalid, follow=True).content.decode()
    revoked = operator.post(address, {"act": "revoke", "reason": "over", **act}, follow=True)
    assert "2 capabilities are revoked." in revoked.content.decode()
    assert "revoked" in operator.get(address, {"revoked": ""}).content.decode()
