"""Acts of an operator on an agent, from the console: by role, through the services, audited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps import console
from apps.agents.models import Agent, HeartbeatSchedule, ScheduleState
from apps.audit.models import AuditAction, AuditEvent
from apps.console import site
from apps.console.access import ROLES_WITH_RIGHT
from apps.console.acts import ACTS, identity_acts, possible_acts, publication_act, right_for
from apps.queues import Task, TaskMessage, captured
from apps.tenants.scope import tenant_transaction
from arbor.agents.endorsement import EndorsementStatus
from arbor.agents.lifecycle import AgentStatus
from tests.factories.agents import AgentFactory, AgentStateFactory
from tests.factories.contacts import HookFactory
from tests.factories.heartbeats import ScheduleFactory
from tests.support.console import World, page_of

#: What a dangerous form asks before it is sent: a question, a word to confirm, a reason or the agent's name.
ASKING = re.compile(r'question=|name="(confirm|reason)"|id="destroy-agent"')
#: Parts with a form whose button is dangerous where the page that includes them says so.
PARTS = ("row_act.html", "row_form.html")
FORM = re.compile(r'<form.*?</form>|\{% include "console/parts/row_\w+\.html".*?%\}', re.DOTALL)


def test_each_dangerous_form_asks_before_it_is_sent() -> None:
    folder = Path(console.__file__).parent / "templates"
    pages = [page for page in folder.rglob("*.html") if page.name not in PARTS]
    forms = [form for page in pages for form in FORM.findall(page.read_text())]
    dangerous = [form for form in forms if "ar-danger" in form or "danger=True" in form]
    assert len(dangerous) > 15
    assert [form for form in dangerous if not ASKING.search(form)] == []


def test_a_form_of_one_button_carries_its_question(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        hook = HookFactory(agent=world.agent)
    page = operator.get(page_of(hook)).content.decode()
    assert set(re.findall(r' data-question="([^"]*)"', page)) >= {
        "Generate a new secret? The one before is valid for a day more.",
        "Delete this hook and the log of its deliveries?",
    }


@pytest.fixture(autouse=True)
def published() -> Iterator[list[TaskMessage]]:
    """Capture the messages to the fleet."""
    with captured() as messages:
        yield messages


def status(world: World) -> str:
    with tenant_transaction(world.tenant.id):
        return str(Agent.objects.get(id=world.agent.id).status)


def set_status(world: World, value: AgentStatus) -> None:
    with tenant_transaction(world.tenant.id):
        Agent.objects.filter(id=world.agent.id).update(status=value)


def audited(world: World) -> list[tuple[str, str]]:
    """Return the actions and actors of the audit log after its first record, which `world` has."""
    with tenant_transaction(world.tenant.id):
        return list(AuditEvent.objects.order_by("id").values_list("action", "actor"))[1:]


@pytest.mark.parametrize(
    ("verb", "before", "after", "action"),
    [
        ("start", AgentStatus.CREATED, AgentStatus.ACTIVE, AuditAction.AGENT_STARTED),
        ("start", AgentStatus.STOPPED, AgentStatus.ACTIVE, AuditAction.AGENT_STARTED),
        ("pause", AgentStatus.ACTIVE, AgentStatus.PAUSED, AuditAction.AGENT_PAUSED),
        ("resume", AgentStatus.PAUSED, AgentStatus.ACTIVE, AuditAction.AGENT_RESUMED),
        ("wake", AgentStatus.DORMANT, AgentStatus.ACTIVE, AuditAction.AGENT_RESUMED),
        ("stop", AgentStatus.ACTIVE, AgentStatus.STOPPED, AuditAction.AGENT_STOPPED),
    ],
)
def test_an_operator_changes_the_status_of_an_agent(
    operator: Client, world: World, verb: str, before: AgentStatus, after: AgentStatus, action: AuditAction
) -> None:
    set_status(world, before)
    response = operator.post(world.act_address, {"act": verb}, follow=True)
    assert response.redirect_chain == [(world.agent_page, 302)]
    assert f"The agent {ACTS[verb].done}." in response.content.decode()
    assert status(world) == after
    assert audited(world) == [(action, "user:operator-person")]


def test_a_requested_heartbeat_is_claimed_and_enqueued(
    operator: Client, world: World, published: list[TaskMessage]
) -> None:
    response = operator.post(world.act_address, {"act": "run"}, follow=True)
    assert "will have a heartbeat at once" in response.content.decode()
    with tenant_transaction(world.tenant.id):
        assert HeartbeatSchedule.objects.get().state == ScheduleState.QUEUED
    assert [message.task for message in published] == [Task.ADVANCE]
    assert audited(world) == [(AuditAction.OPERATOR_ACT, "user:operator-person")]


def test_a_paused_agent_refuses_a_heartbeat_with_the_reason(operator: Client, world: World) -> None:
    set_status(world, AgentStatus.PAUSED)
    response = operator.post(world.act_address, {"act": "run"}, follow=True)
    assert "Nothing was done" in response.content.decode()
    assert "only an active agent has heartbeats" in response.content.decode()
    assert audited(world) == []


def test_an_unknown_act_is_not_found(operator: Client, world: World) -> None:
    response = operator.post(world.act_address, {"act": "explode"})
    assert response.status_code == 404
    assert status(world) == AgentStatus.ACTIVE


@pytest.mark.parametrize("verb", list(ACTS))
def test_an_act_of_a_viewer_is_refused_and_audited(viewer: Client, world: World, verb: str) -> None:
    response = viewer.post(world.act_address, {"act": verb})
    assert response.status_code == 403
    assert f"needs the role {ROLES_WITH_RIGHT[right_for(verb)].value}" in response.content.decode()
    assert status(world) == AgentStatus.ACTIVE
    assert audited(world) == [(AuditAction.DENIED, "user:viewer-person")]


def test_an_agent_of_another_tenant_is_not_found(operator: Client, world: World, other_world: World) -> None:
    response = operator.post(other_world.act_address, {"act": "pause"})
    assert response.status_code == 404
    assert other_world.agent.name not in response.content.decode()
    assert status(other_world) == AgentStatus.ACTIVE


def test_a_get_request_of_an_act_is_refused(operator: Client, world: World) -> None:
    assert operator.get(world.act_address, {"act": "pause"}).status_code == 405
    assert status(world) == AgentStatus.ACTIVE


@pytest.mark.parametrize(("route", "name"), [(route, name) for route, _, name in site._URLS])
def test_a_page_refuses_the_methods_that_it_has_no_use_for(operator: Client, route: str, name: str) -> None:
    address = reverse("admin:index") + route.replace("<int:number>", "1").replace("<int:user_id>", "1")
    assert operator.put(re.sub(r"<uuid:\w+>", str(uuid4()), address)).status_code == 405, name


def test_an_act_needs_a_csrf_token(operator: Client, world: World) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    assert strict.post(world.act_address, {"act": "pause"}).status_code == 403
    assert status(world) == AgentStatus.ACTIVE


@pytest.mark.parametrize("value", list(AgentStatus))
def test_a_page_offers_the_possible_acts(
    operator: Client, viewer: Client, world: World, value: AgentStatus
) -> None:
    set_status(world, value)
    page = operator.get(world.agent_page).content.decode()
    offered = {verb for verb in ACTS if f'name="act" value="{verb}"' in page}
    assert offered == {act.verb for act in possible_acts(value)} | {
        "publish",
        "rotate-keys",
        "suspend-identity",
    }
    assert 'name="act"' not in viewer.get(world.agent_page).content.decode()


def test_every_act_is_possible_in_some_status() -> None:
    lifecycle = {act.verb for value in AgentStatus for act in possible_acts(value)}
    published = {publication_act(published=value).verb for value in (True, False)}
    identity = {act.verb for value in EndorsementStatus for act in identity_acts(value)}
    assert lifecycle | published | identity == set(ACTS)


def test_an_operator_suspends_and_reinstates_an_identity(operator: Client, world: World) -> None:
    refused = operator.post(world.act_address, {"act": "suspend-identity"}, follow=True)
    assert "a reason has 1 to 500 characters" in refused.content.decode()
    operator.post(world.act_address, {"act": "suspend-identity", "reason": "leaked <b>"})
    page = operator.get(world.agent_page).content.decode()
    assert ": leaked &lt;b&gt;" in page
    assert 'value="revoke-identity"' not in page
    assert (
        "Nothing was done: the identity is suspended"
        in operator.post(world.act_address, {"act": "start"}, follow=True).content.decode()
    )
    operator.post(world.act_address, {"act": "reinstate-identity"})
    assert operator.post(world.act_address, {"act": "revoke-identity", "reason": "stolen"}).status_code == 403
    actions = [action for action, _ in audited(world)]
    assert actions == [AuditAction.IDENTITY_SUSPENDED, AuditAction.IDENTITY_ENDORSED, AuditAction.DENIED]


def test_an_operator_publishes_and_withdraws_an_agent(operator: Client, world: World) -> None:
    operator.post(world.act_address, {"act": "publish"})
    page = operator.get(world.agent_page).content.decode()
    assert f"/a2a/{world.tenant.id}/{world.agent.id}/.well-known/agent-card.json" in page
    assert 'value="unpublish"' in page
    operator.post(world.act_address, {"act": "unpublish"})
    assert "agents elsewhere do not reach it" in operator.get(world.agent_page).content.decode()
    with tenant_transaction(world.tenant.id):
        acts = AuditEvent.objects.filter(agent_id=world.agent.id, message__contains="elsewhere")
        assert [event.detail["published"] for event in acts.order_by("id")] == [True, False]


def test_an_operator_pauses_selected_agents(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        second = AgentFactory(name="Second")
        third = AgentFactory(name="Third", status=AgentStatus.PAUSED)
        for agent in (second, third):
            AgentStateFactory(agent=agent)
            ScheduleFactory(agent=agent)
    response = operator.post(
        reverse("admin:agents_agent_changelist"),
        {
            "action": "pause_selected",
            "_selected_action": [str(world.agent.id), str(second.id), str(third.id)],
        },
        follow=True,
    )
    text = response.content.decode()
    assert "Done for 2 agents." in text
    assert "Third: cannot pause an agent that is paused" in text
    with tenant_transaction(world.tenant.id):
        assert set(Agent.objects.values_list("status", flat=True)) == {AgentStatus.PAUSED}


def test_agents_refused_for_one_reason_share_a_message(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agents = [AgentFactory(name=f"Vega {place}", status=AgentStatus.PAUSED) for place in range(5)]
    response = operator.post(
        reverse("admin:agents_agent_changelist"),
        {"action": "run_now_selected", "_selected_action": [str(agent.id) for agent in agents]},
        follow=True,
    )
    (message,) = response.context["messages"]
    assert str(message).startswith("Vega 0, Vega 1, Vega 2 and 2 more: is paused; only an active agent")


def test_a_suspended_identity_does_not_stop_acts_on_others(operator: Client, world: World) -> None:
    operator.post(world.act_address, {"act": "suspend-identity", "reason": "a test"})
    set_status(world, AgentStatus.PAUSED)
    with tenant_transaction(world.tenant.id):
        second = AgentFactory(name="Second", status=AgentStatus.PAUSED)
        AgentStateFactory(agent=second)
        ScheduleFactory(agent=second)
    response = operator.post(
        reverse("admin:agents_agent_changelist"),
        {"action": "resume_selected", "_selected_action": [str(world.agent.id), str(second.id)]},
        follow=True,
    )
    text = response.content.decode()
    assert "Done for 1 agent." in text
    assert f"{world.agent.name}: the identity is suspended" in text
    assert status(world) == AgentStatus.PAUSED
    with tenant_transaction(world.tenant.id):
        assert Agent.objects.get(id=second.id).status == AgentStatus.ACTIVE


def test_a_viewer_pauses_no_selected_agents(viewer: Client, world: World) -> None:
    address = reverse("admin:agents_agent_changelist")
    assert "pause_selected" not in viewer.get(address).content.decode()
    viewer.post(address, {"action": "pause_selected", "_selected_action": [str(world.agent.id)]})
    assert status(world) == AgentStatus.ACTIVE


def test_agents_of_another_tenant_are_not_paused(operator: Client, world: World, other_world: World) -> None:
    operator.post(
        reverse("admin:agents_agent_changelist"),
        {"action": "pause_selected", "_selected_action": [str(other_world.agent.id)]},
    )
    assert status(other_world) == AgentStatus.ACTIVE
