"""The first steps of a new tenant, and the end of a member's access and sessions."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.fleet.accounts import open_sessions
from apps.heartbeats.services.inline import run_heartbeat_now
from apps.queues import captured
from apps.tenants.middleware import VISIT_KEY
from apps.tenants.models import Membership, Role, Tenant, User
from apps.tenants.scope import OPS, tenant_transaction
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import ProcessFactory
from tests.factories.users import PASSWORD
from tests.support.console import World


def steps(client: Client, page: str = "admin:index") -> dict[str, bool]:
    shown = client.get(reverse(page)).context["steps"]
    return {step.key: step.done for step in shown}


UNDONE = ("processes", "model", "agent", "talk", "heartbeat")


def test_the_first_steps_lead_to_a_conversation(operator: Client, tenant: Tenant, templates: None) -> None:
    assert steps(operator) == {"sign-in": True} | dict.fromkeys(UNDONE, False)
    ProcessFactory(kind="worker", queues="heartbeat,llm", model="openai/gpt-5-mini")
    ProcessFactory(kind="scheduler", queues="")
    done = {"sign-in": True, "processes": True, "model": True}
    assert steps(operator) == done | dict.fromkeys(UNDONE[2:], False)
    with captured():
        made = operator.post(
            reverse("admin:agents_agent_add"), {"name": "Vega", "template": "Monitor", "start": "on"}
        )
        assert made.status_code == 302
        text = operator.get(reverse("admin:index")).content.decode()
        assert "Talk with Vega" in text
        with tenant_transaction(tenant.id):
            agent = Agent.objects.get(name="Vega")
        chat = reverse("admin:agent-chat", args=[agent.id])
        assert f'href="{chat}"' in text
        operator.post(chat, {"text": "Hello, Vega."})
        assert steps(operator) == done | {"agent": True, "talk": True, "heartbeat": False}
        run_heartbeat_now(agent_id=agent.id, tenant_id=tenant.id)
    assert steps(operator) == {}
    assert 'id="onboarding"' not in operator.get(reverse("admin:index")).content.decode()
    assert all(steps(operator, "admin:first-steps").values()), "the page of the first steps stays"


def test_steps_of_other_roles_have_no_link(viewer: Client, tenant: Tenant) -> None:
    text = viewer.get(reverse("admin:first-steps")).content.decode()
    for words in ("an owner does it", "an operator does it"):
        assert words in text, words
    steps_shown = text[text.index('id="onboarding"') :]
    assert reverse("admin:models") not in steps_shown


def test_a_viewer_gets_no_link_to_a_form_of_operators(viewer: Client, tenant: Tenant) -> None:
    with tenant_transaction(tenant.id):
        agent = AgentFactory()
    for name, ids, form in (
        ("first-steps", [], "agents_agent_add"),
        ("agent-documents", [agent.id], "knowledge_document_add"),
    ):
        text = viewer.get(reverse(f"admin:{name}", args=ids)).content.decode()
        assert reverse(f"admin:{form}") not in text, name


def test_the_first_step_without_a_tenant_creates_one(root: Client) -> None:
    assert steps(root) == {"sign-in": True, "tenant": False}
    made = root.post(reverse("admin:tenant-create"), {"name": "Acme & Söhne"}, follow=True)
    assert "Created tenant Acme &amp; Söhne. You are its owner." in made.content.decode()
    member = Membership.own.using(OPS).get(tenant__slug="acme-sohne")
    assert member.role == Role.OWNER
    assert "model" in steps(root)
    root.post(reverse("admin:tenant-visit"), {"tenant": str(member.tenant_id), "reason": "a look"})
    assert VISIT_KEY in root.session
    root.post(reverse("admin:tenant-create"), {"name": "Globex"})
    assert VISIT_KEY not in root.session
    repeated = root.post(reverse("admin:tenant-create"), {"name": "Acme & Söhne"}, follow=True)
    assert "there is a tenant &#x27;acme-sohne&#x27; already" in repeated.content.decode()


def test_tenants_are_named_in_any_script(root: Client) -> None:
    for name in ("\u05e9\u05dc\u05d5\u05dd", "\u8239"):
        made = root.post(reverse("admin:tenant-create"), {"name": name}, follow=True)
        assert f"Created tenant {name}." in made.content.decode()


def test_only_superusers_create_tenants(owner: Client, tenant: Tenant) -> None:
    assert owner.post(reverse("admin:tenant-create"), {"name": "Mine"}).status_code == 403
    assert not Tenant.objects.using(OPS).filter(slug="mine").exists()


def sign_in_with_password(username: str) -> Client:
    client = Client()
    client.post(reverse("admin:login"), {"username": username, "password": PASSWORD})
    return client


def act_on(client: Client, user: User, act: str) -> Any:
    member = Membership.own.using(OPS).get(user_id=user.pk)
    return client.post(reverse("admin:member-act", args=[member.id]), {"act": act}, follow=True)


def test_an_owner_ends_a_members_access_and_sessions(owner: Client, world: World, ann: User) -> None:
    browser = sign_in_with_password("ann")
    assert browser.get(world.agent_page).status_code == 200
    member = Membership.own.using(OPS).get(user_id=ann.pk)
    page = owner.get(reverse("admin:tenants_membership_change", args=[member.id])).content.decode()
    assert "1 open session, last request" in page
    done = act_on(owner, ann, "end").content.decode()
    assert "ann is no longer a member. Ended 1 session of ann." in done
    assert open_sessions(ann) == []
    assert browser.get(world.agent_page).status_code == 302
    assert not Membership.own.using(OPS).filter(user_id=ann.pk).exists()


def test_sessions_end_while_the_membership_stays(owner: Client, world: World, ann: User) -> None:
    browser = sign_in_with_password("ann")
    assert "Ended 1 session of ann." in act_on(owner, ann, "sessions").content.decode()
    assert browser.get(world.agent_page).status_code == 302
    assert Membership.own.using(OPS).filter(user_id=ann.pk).exists()


def test_an_owner_keeps_the_session_of_the_request(owner: Client, world: World) -> None:
    user = User.objects.get(username="owner-person")
    assert act_on(owner, user, "sessions").status_code == 200
    assert owner.get(world.agent_page).status_code == 200


def test_an_operator_neither_reads_nor_ends_sessions(operator: Client, world: World, ann: User) -> None:
    sign_in_with_password("ann")
    member = Membership.own.using(OPS).get(user_id=ann.pk)
    page = operator.get(reverse("admin:tenants_membership_change", args=[member.id])).content.decode()
    assert "open session" not in page
    for act in ("sessions", "end"):
        assert act_on(operator, ann, act).status_code == 403
    assert len(open_sessions(ann)) == 1
    assert act_on(operator, ann, "explode").status_code == 403


def test_an_unknown_act_on_a_member_is_not_found(owner: Client, world: World, ann: User) -> None:
    assert act_on(owner, ann, "explode").status_code == 404
