"""`arbor agent` and `arbor agent template`: the life cycle of agents, and templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.agents.models import Agent, Percept, Template
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import tenant_by_slug
from config.cli.agents import lifecycle
from tests.integration.cli.conftest import Arbor


def test_a_repeated_creation_returns_the_same_agent(arbor: Arbor, one_tenant: str) -> None:
    create = ("agent", "create", "Vega", "--template", "Scout", "--start", "--if-missing", "--json")
    first, second = (arbor(*create) for _ in range(2))
    assert (first.code, second.code) == (0, 0), second.err
    assert first.json["id"] == second.json["id"]
    assert second.json["status"] == "active"
    assert "arbor agent run Vega" in arbor(*create[:5], "--if-missing").out
    assert arbor("agent", "create", "Vega", "--template", "Monitor", "--if-missing").code != 0


def test_an_agent_is_created_and_shown(arbor: Arbor, one_tenant: str) -> None:
    ran = arbor("agent", "create", "Vega", "--template", "Scout")
    assert "arbor agent start Vega" in ran.out
    shown = arbor("agent", "show", "vega", "--json").json
    assert (shown["status"], shown["template"], shown["interval_s"]) == ("created", "Scout", 1800)
    assert shown["goals"][0]["title"] == "Survey the target area"
    assert "private" not in str(shown)
    text = arbor("agent", "show", "Vega", "--prompt").out
    for part in (
        "Survey the target area",
        "reflex: no language model",
        "# Character: Vega",
        "energy 10 of 20",
    ):
        assert part in text


def test_an_empty_list_names_the_next_command(arbor: Arbor, one_tenant: str) -> None:
    assert "arbor agent create" in arbor("agent", "list").out
    assert arbor("agent", "list", "--json").json == {"agents": []}


def test_an_agent_is_published_and_withdrawn(arbor: Arbor, active_vega: str) -> None:
    ran = arbor("agent", "publish", active_vega, "--description", "Knows the  tides.")
    assert "/.well-known/agent-card.json" in ran.out
    assert "arbor token create" in ran.out
    shown = arbor("agent", "show", active_vega, "--json").json
    assert (shown["published"], shown["public_description"]) == (True, "Knows the tides.")
    repeated = arbor("agent", "publish", active_vega, "--json").json
    assert (repeated["published"], repeated["description"]) == (True, "Knows the tides.")
    assert "at most 500" in arbor("agent", "publish", active_vega, "--description", "x" * 501).err
    assert arbor("agent", "unpublish", active_vega, "--json").json["published"] is False
    assert not arbor("agent", "show", active_vega, "--json").json["published"]
    with tenant_transaction(tenant_by_slug("acme").id):
        events = AuditEvent.objects.filter(message__contains="elsewhere").order_by("id")
        assert [event.detail["published"] for event in events] == [True, False]


def test_an_identity_is_managed_by_commands(arbor: Arbor, active_vega: str) -> None:
    shown = arbor("agent", "identity", "show", active_vega, "--json").json
    assert (shown["endorsement"]["status"], len(shown["keys"]), shown["refusal"]) == ("active", 1, "")
    assert arbor("agent", "identity", "suspend", active_vega).code == 2
    suspended = arbor("agent", "identity", "suspend", active_vega, "--reason", "leaked", "--json").json
    assert suspended["endorsement"]["reason"] == "leaked"
    assert (
        "does not act: the identity is suspended: leaked"
        in arbor("agent", "identity", "show", active_vega).out
    )
    assert "has no heartbeats: the identity is suspended: leaked" in arbor("agent", "run", active_vega).err
    assert arbor("agent", "identity", "reinstate", active_vega, "--json").json["refusal"] == ""
    assert len(arbor("agent", "identity", "rotate", active_vega, "--json").json["keys"]) == 2
    profile = arbor("agent", "profile", active_vega, "--json").json
    assert profile["identity"]["agent_id"] == shown["agent_id"]
    assert profile["requested_capabilities"]
    revoked = arbor("agent", "identity", "revoke", active_vega, "--reason", "stolen", "--json").json
    assert revoked["endorsement"]["status"] == "revoked"
    assert "stays revoked" in arbor("agent", "identity", "reinstate", active_vega).err


def test_the_status_of_an_agent_is_changed_by_commands(arbor: Arbor, active_vega: str) -> None:
    statuses = [
        arbor("agent", verb, active_vega, "--json").json["status"]
        for verb in ("pause", "resume", "stop", "start", "sleep", "wake")
    ]
    assert statuses == ["paused", "active", "stopped", "active", "dormant", "active"]
    ran = arbor("agent", "wake", active_vega)
    assert (ran.code, "possible now: pause, stop" in ran.err) == (1, True)
    for verb in ran.err.rpartition("possible now: ")[2].strip().split(", "):
        assert arbor("agent", verb, "--help").code == 0


def test_a_destruction_requires_the_name(arbor: Arbor, active_vega: str) -> None:
    assert arbor("agent", "destroy", active_vega).code == 2
    assert arbor("agent", "destroy", active_vega, "--confirm", "Rigel").code == 1
    deleted = arbor("agent", "destroy", "vega", "--confirm", "Vega", "--json").json["deleted"]
    assert deleted["goals"] > 0
    assert arbor("agent", "list", "--json").json == {"agents": []}


def test_a_message_waits_for_the_agent_as_a_percept(arbor: Arbor, active_vega: str) -> None:
    assert "due now" in arbor("agent", "tell", active_vega, "Is the river frozen?").out
    assert arbor("agent", "tell", active_vega, "-", stdin="From a pipe.\n").code == 0
    arbor("agent", "pause", active_vega)
    assert "is paused" in arbor("agent", "tell", active_vega, "And now?").out
    with tenant_transaction(tenant_by_slug("acme").id):
        assert list(Percept.objects.order_by("at").values_list("content", flat=True)) == [
            "Is the river frozen?",
            "From a pipe.",
            "And now?",
        ]
    assert arbor("agent", "show", active_vega, "--json").json["waiting_messages"] == 3


def test_the_audit_log_names_the_shell_user(arbor: Arbor, active_vega: str) -> None:
    arbor("agent", "pause", active_vega)
    with tenant_transaction(tenant_by_slug("acme").id):
        actors = set(AuditEvent.objects.values_list("actor", flat=True))
        actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert len(actors) == 1
    assert actors.pop().startswith("cli:")
    assert actions == [AuditAction.AGENT_CREATED, AuditAction.AGENT_STARTED, AuditAction.AGENT_PAUSED]


def test_a_creation_with_a_failed_start_is_rolled_back(
    arbor: Arbor, one_tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(lifecycle, "start_agent", fail)
    with pytest.raises(RuntimeError):
        arbor("agent", "create", "Vega", "--template", "Scout", "--start")
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not Agent.objects.exists()


def test_an_agent_is_found_by_name_in_any_tenant(arbor: Arbor, two_tenants: tuple[str, str]) -> None:
    arbor("agent", "create", "Vega", "--template", "Scout", "--tenant", "globex")
    assert arbor("agent", "show", "Vega", "--json").json["tenant"] == "globex"
    views = PlatformEvent.objects.using(OPS).filter(action=AuditAction.CROSS_TENANT_VIEW)
    assert [view.message for view in views] == ["finding the agent 'Vega' by its name"]


def test_a_name_of_two_tenants_requires_the_tenant(arbor: Arbor, two_tenants: tuple[str, str]) -> None:
    for slug in two_tenants:
        assert arbor("agent", "create", "Vega", "--template", "Scout", "--tenant", slug).code == 0
    ran = arbor("agent", "start", "Vega")
    assert ran.code == 2
    assert "live in acme, globex: choose one with --tenant SLUG" in ran.err
    assert arbor("agent", "start", "Vega", "--tenant", "globex").code == 0
    listed = arbor("agent", "list", "--json").json["agents"]
    assert [(agent["tenant"], agent["status"]) for agent in listed] == [
        ("acme", "created"),
        ("globex", "active"),
    ]
    assert [
        agent["tenant"] for agent in arbor("agent", "list", "--tenant", "acme", "--json").json["agents"]
    ] == ["acme"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "Sirius"], 1, "no tenant has an agent 'Sirius'"),
        (["show", "Sirius", "--tenant", "acme"], 1, "there is: none yet"),
        (["show", "Sirius", "--tenant", ""], 1, "no tenant ''"),
        (["list", "--tenant", ""], 1, "no tenant ''"),
        (["create", "Vega", "--template", "Scout"], 2, "several tenants (acme, globex)"),
        (["create", "Vega", "--template", "Scout", "--tenant", "acne"], 1, "no tenant 'acne'"),
        (["create", "Vega", "--template", "Scot", "--tenant", "acme"], 1, "no template 'Scot'"),
        (["create", "Vega", "--tenant", "acme"], 2, "Missing option '--template'"),
        (["create", "Vega", "--template", "Scout", "--interval", "soon"], 2, "write 30s, 5m, 1h or 2d"),
    ],
)
def test_an_invalid_command_explains_its_error(
    arbor: Arbor, two_tenants: tuple[str, str], arguments: list[str], code: int, message: str
) -> None:
    ran = arbor("agent", *arguments)
    assert ran.code == code
    assert message in " ".join(ran.err.split())


def test_without_a_tenant_the_command_to_create_one_is_named(arbor: Arbor, database: None) -> None:
    ran = arbor("agent", "create", "Vega", "--template", "Scout")
    assert (ran.code, "arbor tenant create SLUG" in ran.err) == (1, True)


GARDENER = """---
name: Gardener
version: "{version}"
character: {{name: Gardener}}
actions: [rest, recall]
---

## Description

Waters what others planted. And waits.
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gardener.md"
    path.write_text(GARDENER.format(version=1))
    return path


def test_templates_are_listed_and_shown(arbor: Arbor, one_tenant: str) -> None:
    templates = arbor("agent", "template", "list", "--json").json["templates"]
    assert {template["name"] for template in templates} >= {"Scout", "Monitor"}
    assert "Scout" in arbor("agent", "template", "list").out
    shown = arbor("agent", "template", "show", "scout", "--json").json
    assert shown["source_text"].startswith("---\nname: Scout")
    assert "## Instructions" in arbor("agent", "template", "show", "Scout").out


def test_a_tenants_own_template_is_added_and_replaced(arbor: Arbor, one_tenant: str, file: Path) -> None:
    assert arbor("agent", "template", "add", str(file), "--json").json["version"] == "1"
    repeated = arbor("agent", "template", "add", str(file))
    assert (repeated.code, "already" in repeated.err) == (1, True)
    file.write_text(GARDENER.format(version=2))
    assert arbor("agent", "template", "add", str(file), "--replace", "--json").json["version"] == "2"
    assert arbor("agent", "template", "show", "Gardener", "--json").json["origin"] == "user"


def test_an_unreadable_template_is_listed_with_the_reason(arbor: Arbor, one_tenant: str, file: Path) -> None:
    arbor("agent", "template", "add", str(file))
    with tenant_transaction(tenant_by_slug("acme").id):
        Template.objects.update(spec={"name": "Gardener"})
    listed = {row["name"]: row for row in arbor("agent", "template", "list", "--json").json["templates"]}
    assert "another version of Arbor" in listed["Gardener"]["fault"]
    assert (listed["Scout"]["fault"], listed["Gardener"]["actions"]) == ("", None)
    shown = arbor("agent", "template", "list").out
    assert ("unreadable" in shown, "Scout" in shown) == (True, True)
    refused = arbor("agent", "create", "Fern", "--template", "Gardener")
    assert (refused.code, "replace the template" in refused.err) == (1, True)


def test_with_several_tenants_the_built_in_templates_are_listed(
    arbor: Arbor, two_tenants: tuple[str, str], file: Path
) -> None:
    arbor("agent", "template", "add", str(file), "--tenant", "acme")
    ran = arbor("agent", "template", "list", "--json")
    assert "Gardener" not in ran.out
    assert "--tenant" in ran.err
    assert "Gardener" in arbor("agent", "template", "list", "--tenant", "acme").out
    assert "Gardener" not in arbor("agent", "template", "list", "--tenant", "globex").out
    assert arbor("agent", "template", "show", "Scout").code == 0
    assert arbor("agent", "template", "show", "Gardener").code == 2


def test_a_validation_lists_every_fault_with_its_line(arbor: Arbor, file: Path) -> None:
    assert arbor("agent", "template", "validate", str(file), "--json").json["valid"] is True
    file.write_text(GARDENER.format(version=1).replace("rest", "fly").replace("name: Gardener\nv", "v"))
    ran = arbor("agent", "template", "validate", str(file))
    assert ran.code == 1
    assert "line 4" in ran.err
    assert "unknown action 'fly'" in ran.err
    assert "name: is required" in ran.err


def test_an_empty_list_of_templates_names_the_next_command(arbor: Arbor, database: None) -> None:
    assert "seed_templates" in arbor("agent", "template", "list").out
