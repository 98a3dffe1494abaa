"""`arbor tenant` and `arbor tenant user`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.audit.models import AuditAction, PlatformEvent
from apps.tenants.models import Tenant, User
from apps.tenants.scope import OPS
from tests.integration.cli.conftest import Arbor
from tests.support.console import sign_in

PASSWORD = "ford-at-the-bend"


def test_tenants_are_created_listed_suspended_and_resumed(arbor: Arbor, one_tenant: str) -> None:
    assert arbor("tenant", "suspend", "acme", "--json").json == {"slug": "acme", "status": "suspended"}
    assert Tenant.objects.using(OPS).get().status == "suspended"
    assert arbor("tenant", "resume", "acme", "--json").json["status"] == "active"
    assert arbor("tenant", "list", "--json").json == {
        "tenants": [{"slug": "acme", "name": "Acme", "status": "active", "agents": 0, "members": 0}]
    }
    assert "Acme" in arbor("tenant", "list").out


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("a" * 64,), "1 to 63 characters"),
        (("b c",), "letters, digits"),
        (("acme", "--name", "A" * 201), "1 to 200 printable characters"),
        (("acme", "--name", "A\udcff"), "1 to 200 printable characters"),
    ],
)
def test_a_tenant_that_cannot_be_stored_is_refused(
    arbor: Arbor, options: tuple[str, ...], fault: str
) -> None:
    refused = arbor("tenant", "create", *options)
    assert (refused.code, fault in " ".join(refused.err.split())) == (1, True)
    assert not Tenant.objects.using(OPS).exists()


def test_all_agents_of_a_tenant_are_paused_and_resumed(arbor: Arbor, one_tenant: str) -> None:
    for name in ("Vega", "Deneb"):
        assert arbor("agent", "create", name, "--template", "Scout", "--start").code == 0
    arbor("agent", "pause", "Deneb")
    paused = arbor("agent", "pause-all", "--reason", "prices rose", "--json").json
    assert paused == {"tenant": "acme", "paused": 1}
    assert arbor("agent", "resume-all", "--json").json == {"tenant": "acme", "resumed": 1}
    assert arbor("agent", "show", "Deneb", "--json").json["status"] == "paused"


def test_the_whole_installation_is_suspended_and_resumed(arbor: Arbor, one_tenant: str) -> None:
    assert arbor("tenant", "suspend-all").code == 2
    assert arbor("tenant", "suspend-all", "--reason", "drill", "--json").json == {"suspended": ["acme"]}
    assert Tenant.objects.using(OPS).get().status == "suspended"
    assert arbor("tenant", "resume-all", "--json").json == {"resumed": ["acme"]}
    assert Tenant.objects.using(OPS).get().status == "active"


def test_a_tenant_that_was_suspended_alone_since_stays_suspended(arbor: Arbor, one_tenant: str) -> None:
    arbor("tenant", "suspend-all", "--reason", "drill")
    arbor("tenant", "resume", "acme")
    arbor("tenant", "suspend", "acme")
    assert arbor("tenant", "resume-all", "--json").json == {"resumed": []}
    assert Tenant.objects.using(OPS).get().status == "suspended"


def test_a_setting_names_the_tenant_of_commands(
    arbor: Arbor, two_tenants: tuple[str, str], settings: Any
) -> None:
    create = ("agent", "create", "Vega", "--template", "Scout", "--json")
    assert "choose one with --tenant SLUG, or ARBOR_TENANT" in arbor(*create).err
    settings.ARBOR_TENANT = "globex"
    assert arbor(*create).json["tenant"] == "globex"
    assert arbor(*create, "--tenant", "acme").json["tenant"] == "acme"
    # The name alone would be that of two agents.
    assert arbor("agent", "show", "Vega", "--json").json["tenant"] == "globex"
    assert [row["tenant"] for row in arbor("agent", "list", "--json").json["agents"]] == ["globex"]
    assert arbor("audit", "verify", "--all").code == 0
    settings.ARBOR_TENANT = "nowhere"
    assert "ARBOR_TENANT must name a tenant: there is no tenant 'nowhere'" in arbor("agent", "list").err


def test_an_empty_list_names_the_next_command(arbor: Arbor) -> None:
    assert "arbor tenant create" in arbor("tenant", "list").out
    assert arbor("tenant", "list", "--json").json == {"tenants": []}


def test_every_act_on_the_installation_is_audited(arbor: Arbor, one_tenant: str) -> None:
    arbor("tenant", "suspend", "acme")
    assert arbor("tenant", "user", "create", "maria", "--password-stdin", stdin=PASSWORD).code == 0
    arbor("tenant", "member", "add", "acme", "maria", "--role", "viewer", "--json")
    arbor("tenant", "list")
    acts = list(PlatformEvent.objects.using(OPS).order_by("id").values_list("action", "message"))
    assert acts == [
        (AuditAction.TENANT_CREATED, "created tenant acme"),
        (AuditAction.OPERATOR_ACT, "suspended tenant acme"),
        (AuditAction.OPERATOR_ACT, "created account maria"),
        (AuditAction.MEMBER_ADDED, "maria is viewer of tenant acme"),
        (AuditAction.CROSS_TENANT_VIEW, "list of tenants"),
    ]
    assert all(event.actor.startswith("cli:") for event in PlatformEvent.objects.using(OPS).all())


def test_a_generated_password_goes_to_a_new_private_file(
    arbor: Arbor, one_tenant: str, tmp_path: Path
) -> None:
    file = tmp_path / "maria"
    create = ("tenant", "user", "create", "maria", "--generate", "--password-file", str(file))
    created = arbor(*create, "--tenant", "acme", "--json")
    assert created.json["password_file"] == str(file)
    password = file.read_text().strip()
    assert password not in created.out + created.err
    assert file.stat().st_mode & 0o777 == 0o600
    user = User.objects.get(username="maria")
    assert user.check_password(password)
    assert user.is_staff
    assert not user.is_superuser
    assert arbor("tenant", "member", "list", "acme", "--json").json["members"] == [
        {"user": "maria", "role": "operator"}
    ]
    repeated = arbor("tenant", "user", "password", "maria", "--generate", "--password-file", str(file))
    assert (repeated.code, "File exists" in repeated.err) == (2, True)


def test_a_generated_password_is_not_written_to_a_pipe(arbor: Arbor, database: None) -> None:
    ran = arbor("tenant", "user", "create", "maria", "--generate")
    assert (ran.code, "--password-file" in ran.err) == (2, True)
    assert not User.objects.exists()


def test_a_generated_password_is_shown_once_on_a_terminal(
    arbor: Arbor, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    ran = arbor("tenant", "user", "create", "maria", "--generate")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", ran.out)
    (password,) = re.findall(r"shown only now\):\s+(\S+)", plain)
    assert User.objects.get().check_password(password)
    assert password not in ran.err


def test_access_is_ended_by_commands(arbor: Arbor, one_tenant: str) -> None:
    arbor("tenant", "user", "create", "maria", "--password-stdin", "--tenant", "acme", stdin=PASSWORD)
    client = sign_in(User.objects.get(username="maria"))
    (session,) = arbor("tenant", "user", "sessions", "maria", "--json").json["sessions"]
    assert (
        arbor("tenant", "user", "sign-out", "maria", "--session", session["id"], "--json").json["ended"] == 1
    )
    assert client.get("/admin/").status_code == 302
    assert "no session" in arbor("tenant", "user", "sign-out", "maria", "--session", session["id"]).err
    sign_in(User.objects.get(username="maria"))
    assert "Ended 1 session of maria." in arbor("tenant", "user", "sign-out", "maria").out
    assert arbor("tenant", "member", "remove", "acme", "maria").code == 0
    assert "no member" in arbor("tenant", "member", "remove", "acme", "maria").err
    assert arbor("tenant", "user", "disable", "maria", "--json").json == {"user": "maria", "enabled": False}
    (user,) = arbor("tenant", "user", "list", "--json").json["users"]
    assert (user["user"], user["enabled"], user["tenants"]) == ("maria", False, "")
    arbor("tenant", "user", "enable", "maria")
    arbor("tenant", "user", "password", "maria", "--password-stdin", stdin="another long river")
    maria = User.objects.get(username="maria")
    assert maria.is_active
    assert maria.check_password("another long river")


def test_a_password_from_standard_input_is_never_printed(arbor: Arbor, database: None) -> None:
    ran = arbor("tenant", "user", "create", "maria", "--password-stdin", "--superuser", stdin=f"{PASSWORD}\n")
    assert ran.code == 0
    assert PASSWORD not in ran.out + ran.err
    user = User.objects.get()
    assert user.check_password(PASSWORD)
    assert user.is_superuser


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["tenant", "create", "a b"], 1, "letters, digits, hyphens"),
        (["tenant", "create", "acme"], 1, "already"),
        (["tenant", "suspend", "acne"], 1, "there is: acme"),
        (
            ["tenant", "member", "add", "acme", "maria", "--role", "viewer"],
            1,
            "arbor tenant user create maria",
        ),
        (["tenant", "member", "add", "acme", "maria"], 2, "Missing option '--role'"),
        (["tenant", "member", "add", "acme", "maria", "--role", "king"], 2, "'viewer', 'operator', 'owner'"),
        (["tenant", "user", "create", "maria"], 2, "--password-stdin or --generate"),
        (["tenant", "user", "create", "maria", "--password-stdin", "--generate"], 2, "exclude each other"),
        (["tenant", "user", "create", "maria", "--password-stdin"], 1, "too short"),
        (["tenant", "user", "create", "", "--password-stdin"], 1, "an account needs a name"),
        (
            ["tenant", "limit", "acme", "--usd", "-1"],
            1,
            "limit of US dollars a day is 0 to 99,999,999, or none",
        ),
        (
            ["tenant", "limit", "acme", "--usd", "snan"],
            1,
            "limit of US dollars a day is 0 to 99,999,999, or none, got sNaN",
        ),
        (
            ["tenant", "limit", "acme", "--usd", "0.00001"],
            1,
            "limit of US dollars a day has at most 4 decimals, got 0.00001",
        ),
        (["tenant", "user", "create", "ma ria", "--password-stdin"], 1, "valid username"),
        (["tenant", "user", "create", "maria", "--generate", "--tenant", "acne"], 1, "no tenant 'acne'"),
    ],
)
def test_an_invalid_command_explains_its_error(
    arbor: Arbor, one_tenant: str, arguments: list[str], code: int, message: str
) -> None:
    ran = arbor(*arguments)
    assert ran.code == code
    assert message in ran.err
    assert not User.objects.exists()


def test_a_name_is_given_to_one_account_only(arbor: Arbor, database: None) -> None:
    arbor("tenant", "user", "create", "maria", "--password-stdin", stdin=PASSWORD)
    ran = arbor("tenant", "user", "create", "Maria", "--password-stdin", stdin=PASSWORD)
    assert (ran.code, "already" in ran.err) == (1, True)


def test_an_account_that_is_not_created_leaves_no_password(
    arbor: Arbor, database: None, tmp_path: Path
) -> None:
    file = tmp_path / "maria"
    create = ("--generate", "--password-file", str(file))
    assert arbor("tenant", "user", "create", "ma ria", *create).code == 1
    assert not file.exists()
    assert arbor("tenant", "user", "create", "maria", *create).code == 0
