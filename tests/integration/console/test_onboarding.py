"""A new tenant shows the steps to a talking agent; a member's access and sessions end from one page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.agents.services.templates import seed_builtin_templates
from apps.fleet.accounts import sessions_of
from apps.queues import captured
from apps.tenants.models import Membership, Role, Tenant, User
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import add_member
from tests.factories.heartbeats import ProcessFactory
from tests.factories.users import PASSWORD, UserFactory
from tests.support.console import World


def steps(client: Client) -> dict[str, bool]:
    shown = client.get(reverse("admin:index")).context["steps"]
    return {step.key: step.done for step in shown}


def test_a_newcomer_is_led_to_a_talking_agent(operator: Client, tenant: Tenant) -> None:
    assert steps(operator) == {"processes": False, "model": False, "agent": False, "talk": False}
    ProcessFactory(kind="worker", queues="heartbeat,llm", model="openai/gpt-5-mini")
    ProcessFactory(kind="scheduler", queues="")
    assert steps(operator) == {"processes": True, "model": True, "agent": False, "talk": False}
    seed_builtin_templates()
    with captured():
        made = operator.post(
            reverse("admin:agents_agent_add"), {"name": "Vega", "template": "Monitor", "start": "on"}
        )
        assert made.status_code == 302
        text = operator.get(reverse("admin:index")).content.decode()
        assert "Talk with Vega" in text
        with tenant_transaction(tenant.id):
            chat = reverse("admin:agent-chat", args=[Agent.objects.get(name="Vega").id])
        assert f'href="{chat}"' in text
        operator.post(chat, {"text": "Hello, Vega."})
    assert steps(operator) == {}
    assert 'id="onboarding"' not in operator.get(reverse("admin:index")).content.decode()


def test_the_model_step_says_plainly_what_to_set(viewer: Client, tenant: Tenant) -> None:
    text = viewer.get(reverse("admin:index")).content.decode()
    for words in ("OPENAI_API_KEY=…", "no page stores them", "an operator does it"):
        assert words in text, words


@pytest.fixture
def ann(world: World) -> User:
    user: User = UserFactory(username="ann")
    add_member(tenant=world.tenant, user=user, role=Role.VIEWER)
    return user


def sign_in_with_password(username: str) -> Client:
    client = Client()
    client.post(reverse("admin:login"), {"username": username, "password": PASSWORD})
    return client


def act_on(client: Client, user: User, act: str) -> Any:
    member = Membership.own.using(OPS).get(user_id=user.pk)
    return client.post(reverse("admin:member-act", args=[member.id]), {"act": act}, follow=True)


def test_an_owner_ends_a_members_access_and_sessions(owner: Client, world: World, ann: User) -> None:
    browser = sign_in_with_password("ann")
    assert browser.get(world.agents_page).status_code == 200
    member = Membership.own.using(OPS).get(user_id=ann.pk)
    page = owner.get(reverse("admin:tenants_membership_change", args=[member.id])).content.decode()
    assert "1 open session, last request" in page
    done = act_on(owner, ann, "end").content.decode()
    assert "ann is no longer a member. Ended 1 session of ann." in done
    assert sessions_of(ann) == []
    assert browser.get(world.agents_page).status_code == 302
    assert not Membership.own.using(OPS).filter(user_id=ann.pk).exists()


def test_sessions_end_while_the_membership_stays(owner: Client, world: World, ann: User) -> None:
    browser = sign_in_with_password("ann")
    assert "Ended 1 session of ann." in act_on(owner, ann, "sessions").content.decode()
    assert browser.get(world.agents_page).status_code == 302
    assert Membership.own.using(OPS).filter(user_id=ann.pk).exists()


def test_an_owner_keeps_the_session_of_the_request(owner: Client, world: World) -> None:
    user = User.objects.get(username="owner-person")
    assert act_on(owner, user, "sessions").status_code == 200
    assert owner.get(world.agents_page).status_code == 200


def test_others_neither_read_nor_end_sessions(operator: Client, world: World, ann: User) -> None:
    sign_in_with_password("ann")
    member = Membership.own.using(OPS).get(user_id=ann.pk)
    page = operator.get(reverse("admin:tenants_membership_change", args=[member.id])).content.decode()
    assert "open session" not in page
    for act in ("sessions", "end"):
        assert act_on(operator, ann, act).status_code == 403
    assert len(sessions_of(ann)) == 1
    assert act_on(operator, ann, "explode").status_code == 403


def test_an_unknown_act_on_a_member_is_not_found(owner: Client, world: World, ann: User) -> None:
    assert act_on(owner, ann, "explode").status_code == 404
