"""Forms of the console that create and destroy agents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.administration import suspend_tenant
from apps.queues import captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from tests.factories.agents import AgentFactory, TemplateFactory
from tests.support.console import World, page_of

ADD_PAGE = "/admin/agents/agent/add/"


@pytest.fixture(autouse=True)
def _no_messages() -> Iterator[None]:
    """Capture the messages to the fleet."""
    with captured():
        yield


def form_data(**changes: str) -> dict[str, str]:
    return {"name": "Vega", "template": "Researcher", "interval_s": "", "model": "", "start": "on"} | changes


def agents(tenant: Tenant) -> dict[str, str]:
    with tenant_transaction(tenant.id):
        return dict(Agent.objects.values_list("name", "status"))


def test_an_operator_creates_an_agent_and_sees_it(
    operator: Client, tenant: Tenant, other_tenant: Tenant, templates: None
) -> None:
    response = operator.post(ADD_PAGE, form_data(interval_s="90", model="openai/gpt-5-mini"), follow=True)
    text = response.content.decode()
    assert "Vega is active." in text
    assert "every 90 s" in text
    assert "openai/gpt-5-mini" in text
    assert agents(tenant) == {"Vega": AgentStatus.ACTIVE}
    assert agents(other_tenant) == {}
    with tenant_transaction(tenant.id):
        acts = list(AuditEvent.objects.order_by("id").values_list("action", "actor"))
    assert acts == [
        (AuditAction.AGENT_CREATED, "user:operator-person"),
        (AuditAction.AGENT_STARTED, "user:operator-person"),
    ]


def test_an_agent_is_created_without_a_start(operator: Client, tenant: Tenant, templates: None) -> None:
    form = form_data()
    del form["start"]
    operator.post(ADD_PAGE, form)
    assert agents(tenant) == {"Vega": AgentStatus.CREATED}


def test_every_template_is_offered(operator: Client, templates: None) -> None:
    text = operator.get(ADD_PAGE).content.decode()
    for name in ("Scout", "ClaudeCode", "CodeReviewer", "Diagnostician", "Monitor", "Researcher"):
        assert f'<option value="{name}">' in text
    assert "(built in)" in text


def test_an_unreadable_template_leaves_the_others_usable(
    operator: Client, tenant: Tenant, templates: None
) -> None:
    with tenant_transaction(tenant.id):
        TemplateFactory(name="Outdated", spec={})
    response = operator.post(ADD_PAGE, form_data(template="Outdated"))
    assert "which this version cannot read" in response.content.decode()
    operator.post(ADD_PAGE, form_data())
    assert agents(tenant) == {"Vega": AgentStatus.ACTIVE}


def test_a_missing_template_list_names_the_command_that_seeds_it(operator: Client) -> None:
    assert "seed_templates" in operator.get(ADD_PAGE).content.decode()


def test_members_of_a_suspended_tenant_create_no_agent(
    operator: Client, tenant: Tenant, templates: None
) -> None:
    suspend_tenant(slug=tenant.slug, actor="test")
    response = operator.post(ADD_PAGE, form_data())
    assert response.status_code == 403
    assert "suspended" in response.content.decode()
    assert agents(tenant) == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Scout of"}, "has an agent"),
        ({"name": "<b>"}, "begins with a letter"),
        ({"model": "gpt"}, "provider/model"),
        ({"interval_s": "0"}, "greater than or equal to 1"),
        ({"template": "Nobody"}, "Select a valid choice"),
    ],
)
def test_an_invalid_form_creates_no_agent(
    operator: Client, tenant: Tenant, templates: None, changes: dict[str, str], message: str
) -> None:
    operator.post(ADD_PAGE, form_data(name="Scout of"))
    before = agents(tenant)
    response = operator.post(ADD_PAGE, form_data(**changes))
    assert response.status_code == 200
    assert message in response.content.decode()
    assert agents(tenant) == before


def test_a_viewer_creates_no_agent(viewer: Client, tenant: Tenant, templates: None) -> None:
    assert viewer.get(ADD_PAGE).status_code == 403
    assert viewer.post(ADD_PAGE, form_data()).status_code == 403
    assert agents(tenant) == {}
    assert ADD_PAGE not in viewer.get(reverse("admin:agents_agent_changelist")).content.decode()


def test_the_list_of_agents_links_to_the_form(operator: Client, world: World) -> None:
    assert ADD_PAGE in operator.get(reverse("admin:agents_agent_changelist")).content.decode()


def destruction_page(world: World) -> str:
    return reverse("admin:agents_agent_delete", args=[world.agent.id])


def test_an_owner_destroys_an_agent_by_its_name(owner: Client, world: World) -> None:
    assert destruction_page(world) in owner.get(world.agent_page).content.decode()
    response = owner.post(destruction_page(world), {"confirm": world.agent.name}, follow=True)
    assert "is destroyed" in response.content.decode()
    assert agents(world.tenant) == {}
    with tenant_transaction(world.tenant.id):
        act = AuditEvent.objects.get(action=AuditAction.AGENT_DESTROYED)
    assert act.actor == "user:owner-person"


def test_another_name_destroys_nothing(owner: Client, world: World) -> None:
    response = owner.post(destruction_page(world), {"confirm": "yes"})
    assert "confirm with its exact name" in response.content.decode()
    assert world.agent.name in agents(world.tenant)


def test_an_agent_without_a_key_is_destroyed_without_a_seed(owner: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory(name="Keyless", public_id="agent_" + "0" * 64)
    page = reverse("admin:agents_agent_delete", args=[agent.id])
    refused = owner.post(page, {"confirm": "Keyless", "saves_seed": "on"})
    assert refused.status_code == 200
    assert "Keyless has no key to sign its seed with" in refused.content.decode()
    assert "is destroyed" in owner.post(page, {"confirm": "Keyless"}, follow=True).content.decode()


def test_a_get_request_destroys_nothing(owner: Client, world: World) -> None:
    assert "This cannot be undone." in owner.get(destruction_page(world)).content.decode()
    assert world.agent.name in agents(world.tenant)


def test_an_operator_destroys_nothing(operator: Client, world: World) -> None:
    assert destruction_page(world) not in operator.get(world.agent_page).content.decode()
    assert operator.post(destruction_page(world), {"confirm": world.agent.name}).status_code == 403
    assert world.agent.name in agents(world.tenant)


def test_an_agent_of_another_tenant_is_not_destroyed(owner: Client, world: World, other_world: World) -> None:
    response = owner.post(destruction_page(other_world), {"confirm": other_world.agent.name}, follow=True)
    assert response.redirect_chain == [("/admin/", 302)]
    assert other_world.agent.name in agents(other_world.tenant)


def test_selected_agents_cannot_be_deleted(owner: Client, world: World) -> None:
    address = reverse("admin:agents_agent_changelist")
    assert "delete_selected" not in owner.get(address).content.decode()
    owner.post(
        address, {"action": "delete_selected", "_selected_action": [str(world.agent.id)], "post": "yes"}
    )
    assert world.agent.name in agents(world.tenant)
    assert owner.get(page_of(world.agent)).status_code == 200
