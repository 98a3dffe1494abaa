"""Sign-ins, sessions, accounts, members and suspended tenants in the console."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.console.templatetags.console import browser
from apps.fleet import accounts
from apps.fleet.accounts import change_password
from apps.fleet.administration import resume_tenant, suspend_tenant
from apps.tenants.models import ConsoleSession, Membership, Role, User
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import add_member
from config.cli.installation import operator_check
from config.cli.installation.operator_check import OperatorCheck
from tests.factories.users import PASSWORD, UserFactory
from tests.support.console import World, sign_in

INDEX = "/admin/"
LOGIN = "/admin/login/"
NEW_PASSWORD = "a longer river to the sea"


def post_login(client: Client, username: str = "ann", password: str = PASSWORD, **extra: str) -> Any:
    return client.post(LOGIN, {"username": username, "password": password}, headers=extra)


def platform_acts() -> list[tuple[str, str]]:
    return list(PlatformEvent.objects.using(OPS).order_by("id").values_list("action", "message"))


# --- Sign-ins ------------------------------------------------------------------------------------------


def test_sign_ins_and_failures_are_audited(client: Client, ann: User) -> None:
    assert post_login(client, password="wrong").status_code == 200
    assert post_login(client, username="my secret typed here").status_code == 200
    assert post_login(client).status_code == 302
    assert platform_acts() == [
        (AuditAction.SIGN_IN_FAILED, "failed to sign in as ann"),
        (AuditAction.SIGN_IN_FAILED, "failed to sign in as an account that does not exist"),
        (AuditAction.SIGNED_IN, "ann signed in"),
    ]


def test_guessing_is_blocked_and_audited_once(client: Client, ann: User, settings: Any) -> None:
    settings.ARBOR_SIGN_IN_FAILURES = 2
    for _ in range(2):
        post_login(client, password="wrong")
    blocked = post_login(client)
    assert blocked.status_code == 429
    assert "Too many sign-ins failed; try again in 15 minutes." in blocked.content.decode()
    post_login(client)
    actions = [action for action, _ in platform_acts()]
    assert actions.count(AuditAction.SIGN_IN_BLOCKED) == 1
    assert AuditAction.SIGNED_IN not in actions
    settings.ARBOR_SIGN_IN_WINDOW = timedelta(microseconds=1)
    assert post_login(client).status_code == 302


def test_failures_at_one_address_block_no_other_address(client: Client, ann: User, settings: Any) -> None:
    settings.ARBOR_SIGN_IN_FAILURES, settings.ARBOR_PROXIES = 2, 1
    for _ in range(2):
        post_login(client, password="wrong", x_forwarded_for="1.1.1.1, 192.0.2.9")
    assert post_login(client, x_forwarded_for="192.0.2.8, 192.0.2.9").status_code == 429
    assert post_login(client, x_forwarded_for="192.0.2.9, 192.0.2.8").status_code == 302


@pytest.mark.parametrize(
    ("first", "second", "last"),
    [
        ("2001:db8:1:2::a", "2001:db8:1:2:ffff::b", "2001:db8:1:2::c"),
        ("192.0.2.9:5001", "192.0.2.9:5002", "192.0.2.9"),
        ("[2001:db8:1:2::a]:5001", "[2001:db8:1:2::b]:5002", "2001:db8:1:2::c"),
        ("::ffff:192.0.2.9", "192.0.2.9", "192.0.2.9"),
    ],
)
def test_failures_of_one_line_count_together(
    client: Client, ann: User, settings: Any, first: str, second: str, last: str
) -> None:
    settings.ARBOR_SIGN_IN_FAILURES, settings.ARBOR_PROXIES = 2, 1
    for address in (first, second):
        post_login(client, password="wrong", x_forwarded_for=address)
    assert post_login(client, x_forwarded_for=last).status_code == 429
    assert post_login(client, x_forwarded_for="2001:db8:1:3::a").status_code == 302


def test_a_password_change_ends_the_other_sessions(ann: User) -> None:
    here, elsewhere = Client(), Client()
    post_login(here)
    post_login(elsewhere)
    form = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    assert here.post(reverse("admin:password_change"), form).status_code == 302
    assert here.get(INDEX).status_code == 200
    assert elsewhere.get(INDEX).status_code == 302
    assert ConsoleSession.objects.filter(user_id=ann.pk).count() == 1
    assert platform_acts()[-1] == (AuditAction.PASSWORD_CHANGED, "changed the password of ann")


def test_a_password_change_that_cannot_be_audited_is_undone(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = Client(raise_request_exception=False), Client()
    post_login(here)
    post_login(elsewhere)
    form = {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}

    def fail(**_: object) -> None:
        raise OperationalError("the connection was lost")

    monkeypatch.setattr(accounts, "record_platform", fail)
    assert here.post(reverse("admin:password_change"), form).status_code == 503
    assert [client.get(INDEX).status_code for client in (here, elsewhere)] == [200, 200]
    assert User.objects.get(pk=ann.pk).check_password(PASSWORD)


# --- Sessions ------------------------------------------------------------------------------------------


def test_a_session_ends_when_it_is_idle(client: Client, ann: User, settings: Any) -> None:
    post_login(client)
    assert client.get(INDEX).status_code == 200
    ConsoleSession.objects.update(seen_at=timezone.now() - settings.ARBOR_SESSION_IDLE)
    assert client.get(INDEX).status_code == 302
    assert not ConsoleSession.objects.filter(user_id=ann.pk).exists()


def test_a_request_keeps_a_session_open(client: Client, ann: User, settings: Any) -> None:
    post_login(client)
    ConsoleSession.objects.update(seen_at=timezone.now() - settings.ARBOR_SESSION_IDLE / 2)
    client.get(INDEX)
    session = ConsoleSession.objects.get(user_id=ann.pk)
    assert timezone.now() - session.seen_at < timedelta(minutes=1)
    assert session.signed_in_at is not None
    assert session.expire_date == session.signed_in_at + settings.ARBOR_SESSION_AGE


def test_a_person_lists_and_ends_own_sessions(ann: User) -> None:
    here, elsewhere = Client(), Client()
    post_login(here)
    post_login(elsewhere, user_agent="Lynx <b>2.8</b>")
    page = here.get(reverse("admin:own-sessions")).content.decode()
    assert "Lynx &lt;b&gt;2.8" in page
    assert "this one" in page
    for session in ConsoleSession.objects.all():
        assert session.session_key not in page
    other = ConsoleSession.objects.get(browser__startswith="Lynx")
    here.post(reverse("admin:own-sessions"), {"session": "no id"})
    assert elsewhere.get(INDEX).status_code == 200
    here.post(reverse("admin:own-sessions"), {"session": str(other.public_id)})
    assert elsewhere.get(INDEX).status_code == 302
    assert here.get(INDEX).status_code == 200


def test_nobody_ends_the_session_of_another(viewer: Client, client: Client, ann: User) -> None:
    post_login(client)
    theirs = ConsoleSession.objects.get(user_id=ann.pk)
    viewer.post(reverse("admin:own-sessions"), {"session": str(theirs.public_id)})
    viewer.post(reverse("admin:own-sessions"))
    assert client.get(INDEX).status_code == 200


# --- Accounts ------------------------------------------------------------------------------------------


def act_on(client: Client, user: User, act: str, **data: str) -> Any:
    return client.post(reverse("admin:user-act", args=[user.pk]), {"act": act, **data}, follow=True)


def test_a_disabled_account_is_signed_out_at_once(root: Client, client: Client, ann: User) -> None:
    post_login(client)
    assert "is disabled and signed out" in act_on(root, ann, "disable").content.decode()
    assert client.get(INDEX).status_code == 302
    assert post_login(client).status_code == 200
    act_on(root, ann, "enable")
    assert post_login(client).status_code == 302
    actions = [action for action, _ in platform_acts()]
    assert AuditAction.ACCOUNT_DISABLED in actions
    assert AuditAction.ACCOUNT_ENABLED in actions


def test_a_superuser_ends_sessions_and_sets_passwords(root: Client, client: Client, ann: User) -> None:
    post_login(client)
    act_on(root, ann, "end")
    assert client.get(INDEX).status_code == 302
    assert "too short" in act_on(root, ann, "password", password="short").content.decode()
    assert "too short" not in act_on(root, ann, "password", password=NEW_PASSWORD).content.decode()
    assert post_login(client, password=NEW_PASSWORD).status_code == 302


def test_the_last_superuser_cannot_be_disabled(root: Client, database: None) -> None:
    user = User.objects.get(username="root")
    assert "Nothing was done" in act_on(root, user, "disable").content.decode()
    assert User.objects.get(username="root").is_active


def test_an_owner_does_not_change_accounts(owner: Client, ann: User) -> None:
    for act in ("disable", "enable", "password", "end"):
        assert act_on(owner, ann, act).status_code == 403
    assert owner.get(reverse("admin:tenants_user_add")).status_code == 403


def test_an_account_is_created_in_the_console(root: Client, database: None) -> None:
    add = reverse("admin:tenants_user_add")
    assert "too short" in root.post(add, {"username": "bob", "password": "x"}).content.decode()
    page = root.post(add, {"username": "bob", "password": NEW_PASSWORD}, follow=True).content.decode()
    assert "Created account bob." in page
    assert User.objects.get(username="bob").check_password(NEW_PASSWORD)


def test_flower_follows_the_password_of_a_superuser(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_check, "CHECKED_EVERY_S", 0.0)
    chief = UserFactory(username="chief", is_superuser=True)
    check = OperatorCheck()
    assert not check.accepts("ann", PASSWORD, "")
    assert not check.accepts("chief", "wrong", "")
    assert check.accepts("chief", PASSWORD, "")
    assert check.accepts("chief", PASSWORD, "")
    assert [action for action, _ in platform_acts()].count(AuditAction.SIGNED_IN) == 1
    change_password(username=chief.username, password=NEW_PASSWORD, actor="cli:tests")
    assert not check.accepts("chief", PASSWORD, "")
    assert check.accepts("chief", NEW_PASSWORD, "")
    User.objects.update(is_active=False)
    assert not check.accepts("chief", NEW_PASSWORD, "")


# --- Members -------------------------------------------------------------------------------------------


def act_on_member(client: Client, user: User, **data: str) -> Any:
    member = Membership.own.using(OPS).get(user_id=user.pk)
    return client.post(reverse("admin:member-act", args=[member.id]), data, follow=True)


def test_owners_add_change_and_remove_members(owner: Client, world: World) -> None:
    user = UserFactory(username="bob")
    client = sign_in(user)
    owner.post(reverse("admin:member-add"), {"username": "bob", "role": "viewer"})
    assert client.get(world.agent_page).status_code == 200
    act_on_member(owner, user, act="role", role="operator")
    assert "Run now" in client.get(world.agent_page).content.decode()
    act_on_member(owner, user, act="remove")
    assert client.get(world.agent_page).status_code == 403
    with tenant_transaction(world.tenant.id):
        messages = list(AuditEvent.objects.order_by("id").values_list("message", flat=True))
    assert messages[-3:] == [
        "bob is viewer of tenant acme",
        "bob is operator of tenant acme",
        "bob is no longer a member of tenant acme",
    ]


def test_operators_do_not_change_members(operator: Client, ann: User) -> None:
    assert act_on_member(operator, ann, act="remove").status_code == 403
    posted = operator.post(reverse("admin:member-add"), {"username": "ann", "role": "owner"})
    assert posted.status_code == 403
    page = operator.get(reverse("admin:tenants_membership_changelist")).content.decode()
    assert "new-member" not in page


def test_the_last_owner_cannot_be_removed(owner: Client, world: World) -> None:
    user = User.objects.get(username="owner-person")
    assert "the last owner of acme" in act_on_member(owner, user, act="remove").content.decode()
    assert "the last owner of acme" in act_on_member(owner, user, role="viewer").content.decode()
    assert Membership.own.using(OPS).get(user_id=user.pk).role == Role.OWNER


@pytest.mark.parametrize("name", ["nobody", "", "a%00b", "%ED%A0%80", "x" * 10_000])
def test_an_unknown_account_name_is_reported(owner: Client, world: World, name: str) -> None:
    page = owner.post(
        reverse("admin:member-add"),
        f"username={name}&role=viewer",
        content_type="application/x-www-form-urlencoded",
        follow=True,
    ).content.decode()
    assert "Nobody was added: there is no account" in page


# --- Suspended tenants ---------------------------------------------------------------------------------


def test_members_of_a_suspended_tenant_see_a_notice(viewer: Client, world: World) -> None:
    suspend_tenant(slug="acme", actor="cli:tests")
    for page in world.pages:
        response = viewer.get(page)
        assert response.status_code == 403, page
        text = response.content.decode()
        assert "Acme is suspended" in text, page
        assert world.agent.name not in text, page
    assert viewer.post(world.act_address, {"act": "pause"}).status_code == 403
    resume_tenant(slug="acme", actor="cli:tests")
    assert viewer.get(INDEX).status_code == 200


def test_another_tenant_of_the_member_stays_open(world: World, other_world: World) -> None:
    user = UserFactory(username="both")
    add_member(tenant=world.tenant, user=user, role=Role.VIEWER)
    add_member(tenant=other_world.tenant, user=user, role=Role.VIEWER)
    suspend_tenant(slug="acme", actor="cli:tests")
    client = sign_in(user)
    assert other_world.agent.name in client.get(INDEX).content.decode()
    client.post(reverse("admin:tenant-choose"), {"tenant": str(world.tenant.id)})
    assert "To Globex" in client.get(INDEX).content.decode()


def test_a_superuser_of_a_suspended_tenant_sees_installation(chief: Client, world: World) -> None:
    suspend_tenant(slug="acme", actor="cli:tests")
    assert "Acme is suspended" in chief.get(INDEX).content.decode()
    assert chief.get(world.agent_page).status_code == 403
    assert chief.get(reverse("admin:tenants_tenant_changelist")).status_code == 200


# --- Bounded texts -------------------------------------------------------------------------------------


def test_a_refused_act_stores_a_bounded_text(viewer: Client, world: World) -> None:
    assert viewer.post(world.act_address, {"act": "x\0\x1b[2J" + "y" * 1_000_000}).status_code == 403
    with tenant_transaction(world.tenant.id):
        event = AuditEvent.objects.get(action=AuditAction.DENIED)
    assert len(event.message) < 300
    assert event.message.isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36",
            "Chrome on Linux",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Firefox on Windows",
        ),
        ("Lynx 2.8", "Lynx 2.8"),
    ],
)
def test_a_session_names_its_browser(text: str, shown: str) -> None:
    assert browser(text) == shown
