"""The page of signals: filters, further pages, updates, and isolation of tenants."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.console.pages.signals import SIGNALS_SHOWN
from apps.fleet.lifecycle import pause_agent
from apps.signals.services.emission import emit
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from arbor.signals import SignalName, signal
from tests.integration.heartbeats.conftest import agent, fleet, new_agent

__all__ = ["agent", "fleet", "new_agent"]

type SignIn = Callable[[Role], Client]


def page(client: Client, **query: str) -> str:
    response = client.get(reverse("admin:signals"), query)
    assert response.status_code == 200
    return response.content.decode()


def test_signals_are_shown_with_their_agent_and_meaning(agent: Agent, as_role: SignIn) -> None:
    shown = page(as_role(Role.VIEWER))
    assert "agent.started" in shown
    assert "The agent was started" in shown
    assert f"/agents/agent/{agent.id}/" in shown
    assert 'data-live="5"' in shown


def test_an_agents_page_links_to_its_signals(agent: Agent, as_role: SignIn) -> None:
    viewer = as_role(Role.VIEWER)
    link = f"{reverse('admin:signals')}?agent={agent.id}"
    assert link in viewer.get(reverse("admin:agents_agent_change", args=[agent.id])).content.decode()
    for named in (str(agent.id), agent.public_id, agent.name.lower()):
        assert "agent.created" in page(viewer, agent=named)


def test_an_update_of_the_page_has_only_the_rows(agent: Agent, as_role: SignIn) -> None:
    response = as_role(Role.VIEWER).get(
        reverse("admin:signals"), {"name": "agent.started"}, headers={"X-Live": "1"}
    )
    shown = response.content.decode()
    assert shown.lstrip().startswith('<div id="signal-rows"')
    assert "agent.started" in shown
    assert "agent.created" not in shown.replace("agent.created</option>", "")


def test_older_signals_are_on_further_pages(agent: Agent, as_role: SignIn) -> None:
    with tenant_transaction(agent.tenant_id):
        emit(
            *(
                signal(SignalName.LESSON_EXTRACTED, agent.id, action=f"act-{number}", outcome="success")
                for number in range(SIGNALS_SHOWN)
            )
        )
        pause_agent(agent_id=agent.id, actor="cli:nora")
    viewer = as_role(Role.VIEWER)
    first = page(viewer)
    assert "agent.paused" in first
    assert ">act-0<" not in first.replace(" ", "")
    older = first.split('rel="next" href="?', 1)[1].split('"', 1)[0].replace("&amp;", "&")
    second = viewer.get(f"{reverse('admin:signals')}?{older}").content.decode()
    assert "act-0" in second
    assert "data-live=" not in second


def test_an_invalid_filter_is_explained(agent: Agent, as_role: SignIn) -> None:
    viewer = as_role(Role.VIEWER)
    assert "there is no signal" in page(viewer, name="nothing")
    assert "there is no agent" in page(viewer, agent="Nobody")
    assert "No signals match" in page(viewer, agent="Ada", name="memory.goal_abandoned")


def test_another_tenants_signals_are_not_shown(
    agent: Agent, other_tenant: Tenant, tenant: Tenant, as_role: SignIn, new_agent: Callable[..., Agent]
) -> None:
    new_agent(other_tenant, "Secret")
    assert "Secret" not in page(as_role(Role.VIEWER))


def test_a_member_of_no_tenant_sees_no_signals(root: Client) -> None:
    assert root.get(reverse("admin:signals")).status_code == 403
