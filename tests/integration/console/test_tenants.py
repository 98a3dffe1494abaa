"""Sign-in and choice of a tenant in the console, where each person sees only the rows of their own tenants."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.console import views
from apps.fleet.accounts import account_by_name, create_account
from apps.tenants.middleware import SESSION_KEY, VISIT_KEY
from apps.tenants.models import Role, Tenant, User
from apps.tenants.scope import OPS, current_scope, tenant_transaction
from apps.tenants.services import add_member
from apps.workflows.models import Workflow
from arbor.errors import AlreadyExists, NotFound
from tests.factories.users import PASSWORD, UserFactory
from tests.factories.workflows import SOURCE
from tests.support.console import PLATFORM, World, page_of, sign_in
from tests.support.races import none_if_refused, race

INDEX = "/admin/"


@pytest.fixture
def member_of_both(world: World, other_world: World) -> Client:
    """Sign in an operator of one tenant who is a viewer of the other."""
    user = UserFactory(username="ann")
    add_member(tenant=world.tenant, user=user, role=Role.OPERATOR)
    add_member(tenant=other_world.tenant, user=user, role=Role.VIEWER)
    return sign_in(user)


def choose(client: Client, tenant: Tenant) -> Any:
    return client.post(reverse("admin:tenant-choose"), {"tenant": str(tenant.id)})


def test_nobody_sees_a_page_without_signing_in(client: Client, world: World) -> None:
    for page in [*world.pages, reverse("admin:tenants_tenant_changelist")]:
        response = client.get(page)
        assert response.status_code == 302, page
        assert response.headers["Location"].startswith(reverse("admin:login"))


def test_signing_in_leads_to_the_fleet(client: Client, world: World) -> None:
    user = UserFactory(username="ann")
    add_member(tenant=world.tenant, user=user, role=Role.VIEWER)
    response = client.post(reverse("admin:login"), {"username": "ann", "password": PASSWORD})
    assert response.headers["Location"] == INDEX
    assert world.agent.name in client.get(INDEX).content.decode()


def test_a_member_sees_their_tenant_and_role(viewer: Client, world: World) -> None:
    text = viewer.get(INDEX).content.decode()
    assert world.tenant.name in text
    assert "Viewer" in text
    assert "tenant-switch" not in text


def test_pages_of_another_tenant_are_not_found(viewer: Client, world: World, other_world: World) -> None:
    for row in other_world.rows:
        response = viewer.get(page_of(row))
        assert (response.status_code, response.headers["Location"]) == (302, INDEX), page_of(row)
    # The next page shows the messages about all these pages.
    text = viewer.get(INDEX).content.decode()
    assert text.count("doesn’t exist") == len(other_world.rows)
    assert "globex" not in text.casefold()


def test_a_page_of_another_tenant_answers_like_an_unknown_page(
    viewer: Client, world: World, other_world: World
) -> None:
    theirs = viewer.get(page_of(other_world.agent), follow=True)
    unknown = uuid4()
    nobodys = viewer.get(reverse("admin:agents_agent_change", args=[unknown]), follow=True)
    text = theirs.content.decode().replace(str(other_world.agent.id), str(unknown))
    assert theirs.redirect_chain == nobodys.redirect_chain
    assert f"“{unknown}” doesn’t exist" in text
    assert f"“{unknown}” doesn’t exist" in nobodys.content.decode()


def test_a_filter_or_search_for_another_tenants_agent_finds_nothing(
    viewer: Client, world: World, other_world: World
) -> None:
    theirs = str(other_world.agent.id)
    for address, query in (
        ("admin:memories_memory_changelist", {"agent__id__exact": theirs}),
        ("admin:memories_memory_changelist", {"q": str(other_world.rows[4].pk)}),
        ("admin:heartbeats_heartbeat_changelist", {"agent__id__exact": theirs}),
        ("admin:agents_agent_changelist", {"q": "Scout globex"}),
        ("admin:audit_auditevent_changelist", {"agent_id__exact": theirs}),
    ):
        text = viewer.get(reverse(address), query).content.decode()
        assert "Nothing fits the search and the filters" in text, address
        assert "data-row" not in text


def test_autocompletion_offers_the_tenants_own_agents(
    viewer: Client, world: World, other_world: World
) -> None:
    answer = viewer.get(
        reverse("admin:autocomplete"),
        {"term": "Scout", "app_label": "memories", "model_name": "memory", "field_name": "agent"},
    )
    assert [result["text"] for result in answer.json()["results"]] == [world.agent.name]


def test_a_member_of_two_tenants_chooses(member_of_both: Client, world: World, other_world: World) -> None:
    first = member_of_both.get(INDEX).content.decode()
    assert "tenant-switch" in first
    assert world.agent.name in first

    assert choose(member_of_both, other_world.tenant).headers["Location"] == INDEX
    second = member_of_both.get(INDEX).content.decode()
    assert other_world.agent.name in second
    assert world.agent.name not in second
    assert member_of_both.get(page_of(world.agent), follow=True).redirect_chain == [(INDEX, 302)]


def test_a_member_has_the_role_of_the_chosen_tenant(
    member_of_both: Client, world: World, other_world: World
) -> None:
    assert "Run now" in member_of_both.get(page_of(world.agent)).content.decode()
    choose(member_of_both, other_world.tenant)
    assert "Run now" not in member_of_both.get(page_of(other_world.agent)).content.decode()
    assert member_of_both.post(other_world.act_address, {"act": "pause"}).status_code == 403


def test_a_page_of_another_tenant_posts_and_updates_nothing(
    member_of_both: Client, world: World, other_world: World
) -> None:
    choose(member_of_both, world.tenant)
    page = member_of_both.get(INDEX).content.decode()
    assert f'<meta name="page-tenant" content="{world.tenant.id}">' in page
    other = {"X-Live": "1", "X-Page-Tenant": str(other_world.tenant.id)}
    assert member_of_both.get(INDEX, headers=other).status_code == 409
    add = reverse("admin:workflows_workflow_add")
    form = {"name": "review", "source": SOURCE, "zone": "UTC"}
    refused = member_of_both.post(add, {**form, "page_tenant": str(other_world.tenant.id)})
    assert refused.status_code == 409
    assert f"you work in {world.tenant.name} now" in refused.content.decode()
    with tenant_transaction(world.tenant.id):
        assert not Workflow.objects.filter(name="review").exists()
    own = {**form, "page_tenant": str(world.tenant.id)}
    assert member_of_both.post(add, own).status_code == 302
    chosen = {"tenant": str(other_world.tenant.id), "page_tenant": str(world.tenant.id)}
    assert member_of_both.post(reverse("admin:tenant-choose"), chosen).status_code == 302


def test_a_tenant_without_a_membership_cannot_be_chosen(
    viewer: Client, world: World, other_world: World
) -> None:
    response = choose(viewer, other_world.tenant)
    assert response.status_code == 404
    assert "globex" not in response.content.decode().casefold()
    assert world.agent.name in viewer.get(INDEX).content.decode()


def test_a_forged_session_opens_no_other_tenant(viewer: Client, world: World, other_world: World) -> None:
    session = viewer.session
    session[SESSION_KEY] = str(other_world.tenant.id)
    session[VISIT_KEY] = {
        "tenant": str(other_world.tenant.id),
        "until": (timezone.now() + timedelta(hours=1)).isoformat(),
    }
    session.save()
    text = viewer.get(INDEX).content.decode()
    assert world.agent.name in text
    assert "globex" not in text.casefold()


def test_choosing_is_a_post_with_a_token(member_of_both: Client, other_world: World) -> None:
    assert (
        member_of_both.get(reverse("admin:tenant-choose"), {"tenant": str(other_world.tenant.id)}).status_code
        == 405
    )
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = member_of_both.cookies
    response = choose(strict, other_world.tenant)
    assert response.status_code == 403
    assert "Please try again" in response.content.decode()


def test_missing_and_forbidden_pages_have_a_page_of_their_own(viewer: Client, world: World) -> None:
    missing = viewer.get("/nothing/")
    assert missing.status_code == 404
    assert "There is nothing here" in missing.content.decode()
    refused = viewer.get(reverse("admin:tenants_user_changelist"))
    assert refused.status_code == 403
    assert "That page needs another role in this tenant" in refused.content.decode()


def test_a_request_leaves_no_tenant_behind(viewer: Client, world: World) -> None:
    viewer.get(INDEX)
    viewer.get(reverse("admin:agents_agent_change", args=[uuid4()]))
    assert current_scope() is None


# --- Users who run the installation ------------------------------------------------------------------


def visit(client: Client, tenant: Tenant, reason: str = "looking for a stuck agent") -> Any:
    return client.post(reverse("admin:tenant-visit"), {"tenant": str(tenant.id), "reason": reason})


def test_a_superuser_sees_no_data_of_tenants(root: Client, world: World) -> None:
    index = root.get(INDEX).content.decode()
    assert "You are a member of no tenant" in index
    assert world.agent.name not in index
    for page in world.pages[1:]:
        response = root.get(page, follow=True)
        if "heartbeats/process" not in page and "operations" not in page:
            assert response.status_code == 403, page
        assert world.agent.name not in response.content.decode(), page
    assert root.post(world.act_address, {"act": "pause"}).status_code == 403


def test_listing_the_tenants_is_recorded(root: Client, world: World, other_world: World) -> None:
    text = root.get(reverse("admin:tenants_tenant_changelist")).content.decode()
    assert "Acme" in text
    assert "Globex" in text
    event = PlatformEvent.objects.using(OPS).get()
    assert (event.action, event.actor) == (AuditAction.CROSS_TENANT_VIEW, "user:root")


def test_a_visit_needs_a_reason(root: Client, world: World) -> None:
    response = root.post(
        reverse("admin:tenant-visit"), {"tenant": str(world.tenant.id), "reason": "  "}, follow=True
    )
    assert "needs a reason" in response.content.decode()
    assert not PlatformEvent.objects.using(OPS).filter(message__startswith="looks into").exists()
    assert world.agent.name not in root.get(INDEX).content.decode()


def test_a_visit_is_recorded_on_both_sides(root: Client, world: World) -> None:
    visit(root, world.tenant)
    expected = ("user:root", "looks into acme: looking for a stuck agent")
    event = PlatformEvent.objects.using(OPS).get(message__startswith="looks into")
    assert (event.actor, event.message) == expected
    with tenant_transaction(world.tenant.id):
        own = AuditEvent.objects.get(action=AuditAction.CROSS_TENANT_VIEW)
    assert (own.actor, own.message) == expected


def test_a_visitor_reads_and_changes_nothing(root: Client, world: World, other_world: World) -> None:
    visit(root, world.tenant)
    page = root.get(world.agent_page).content.decode()
    assert "You are visiting Acme as a viewer." in page
    assert "Run now" not in page
    assert root.post(world.act_address, {"act": "pause"}).status_code == 403
    assert root.get(page_of(other_world.agent), follow=True).redirect_chain == [(INDEX, 302)]


def test_a_visit_ends_by_leaving(root: Client, world: World) -> None:
    visit(root, world.tenant)
    root.post(reverse("admin:tenant-leave"))
    assert world.agent.name not in root.get(INDEX).content.decode()


def test_a_visit_expires(root: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "VISIT_DURATION", timedelta(seconds=-1))
    visit(root, world.tenant)
    assert world.agent.name not in root.get(INDEX).content.decode()


def test_a_member_who_runs_the_installation_may_visit_too(
    chief: Client, world: World, other_world: World
) -> None:
    visit(chief, other_world.tenant)
    assert other_world.agent.name in chief.get(INDEX).content.decode()
    choose(chief, world.tenant)
    assert world.agent.name in chief.get(INDEX).content.decode()


def test_an_owner_does_not_visit_other_tenants(owner: Client, world: World, other_world: World) -> None:
    assert visit(owner, other_world.tenant).status_code == 403
    assert not PlatformEvent.objects.using(OPS).exists()
    for label in PLATFORM:
        app, model = label.lower().split(".")
        assert owner.get(reverse(f"admin:{app}_{model}_changelist")).status_code == 403


def test_a_person_without_a_tenant_sees_a_notice(world: World) -> None:
    client = sign_in(UserFactory(username="new"))
    assert "You are a member of no tenant yet" in client.get(INDEX).content.decode()
    assert client.get(world.agent_page).status_code == 403


def test_a_member_who_is_no_staff_cannot_open_the_console(world: World) -> None:
    user = UserFactory(username="outside", is_staff=False)
    add_member(tenant=world.tenant, user=user, role=Role.OWNER)
    assert sign_in(user).get(INDEX).status_code == 302


def test_members_of_other_tenants_are_not_listed(viewer: Client, world: World, other_world: World) -> None:
    add_member(tenant=other_world.tenant, user=UserFactory(username="stranger"), role=Role.OWNER)
    text = viewer.get(reverse("admin:tenants_membership_changelist")).content.decode()
    assert "viewer-person" in text
    assert "stranger" not in text


OLD_PASSWORD, NEW_PASSWORD = "a long river to the sea", "a longer river to the sea"


def test_two_accounts_of_one_name_are_never_created(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    hash_password, looked_up = User.set_password, Barrier(2, timeout=20)

    def hash_after_both_looked_up(user: User, password: str | None) -> None:
        looked_up.wait()
        hash_password(user, password)

    monkeypatch.setattr(User, "set_password", hash_after_both_looked_up)
    create = partial(create_account, username="ann", password=OLD_PASSWORD, actor="cli:tests")
    created = race(*[none_if_refused(create, AlreadyExists)] * 2)
    assert sum(user is not None for user in created) == 1
    assert PlatformEvent.objects.using(OPS).get().message == "created account ann"


def test_an_account_that_was_stored_with_wide_letters_is_found(database: None) -> None:
    older = UserFactory(username="ｂｏ")
    assert account_by_name("ｂｏ") == older
    usual = UserFactory(username="bo")
    assert account_by_name("ｂｏ") == usual
    with pytest.raises(NotFound, match="no account 'bo\\\\x00'"):
        account_by_name("bo\0")


@pytest.mark.parametrize("given", ["ann", "ａｎｎ"])
def test_a_person_signs_in_and_changes_their_password(database: None, given: str) -> None:
    create_account(username=given, password=OLD_PASSWORD, actor="cli:tests")
    client = Client()
    client.post(reverse("admin:login"), {"username": given, "password": OLD_PASSWORD})
    assert User.objects.get().last_login is not None
    changed = client.post(
        reverse("admin:password_change"),
        {"old_password": OLD_PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD},
    )
    assert changed.status_code == 302
    user = User.objects.get()
    assert user.check_password(NEW_PASSWORD)
    assert client.get(reverse("admin:index")).status_code == 200
