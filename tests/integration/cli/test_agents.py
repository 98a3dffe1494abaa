"""`arbor agent`: the life cycle of an agent."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.services import tenant_by_slug
from config.cli.agents import lifecycle
from tests.integration.cli.conftest import Arbor


@pytest.fixture
def vega(arbor: Arbor, one_tenant: str) -> str:
    ran = arbor("agent", "create", "Vega", "--template", "Scout", "--interval", "5m", "--start")
    assert ran.code == 0, ran.err
    return "Vega"


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


def test_the_list_says_what_to_do_when_it_is_empty(arbor: Arbor, one_tenant: str) -> None:
    assert "arbor agent create" in arbor("agent", "list").out
    assert arbor("agent", "list", "--json").json == {"agents": []}


def test_the_life_of_an_agent_in_verbs(arbor: Arbor, vega: str) -> None:
    statuses = [
        arbor("agent", verb, vega, "--json").json["status"]
        for verb in ("pause", "resume", "stop", "start", "sleep", "wake")
    ]
    assert statuses == ["paused", "active", "stopped", "active", "dormant", "active"]
    ran = arbor("agent", "wake", vega)
    assert (ran.code, "possible now: pause, stop" in ran.err) == (1, True)
    for verb in ran.err.rpartition("possible now: ")[2].strip().split(", "):
        assert arbor("agent", verb, "--help").code == 0


def test_destroying_asks_for_the_name(arbor: Arbor, vega: str) -> None:
    assert arbor("agent", "destroy", vega).code == 2
    assert arbor("agent", "destroy", vega, "--confirm", "Rigel").code == 1
    deleted = arbor("agent", "destroy", "vega", "--confirm", "Vega", "--json").json["deleted"]
    assert deleted["goals"] > 0
    assert arbor("agent", "list", "--json").json == {"agents": []}


def test_a_message_waits_for_the_agent_as_a_percept(arbor: Arbor, vega: str) -> None:
    assert "due now" in arbor("agent", "tell", vega, "Is the river frozen?").out
    assert arbor("agent", "tell", vega, "-", stdin="From a pipe.\n").code == 0
    arbor("agent", "pause", vega)
    assert "is paused" in arbor("agent", "tell", vega, "And now?").out
    with tenant_transaction(tenant_by_slug("acme").id):
        assert list(Percept.objects.order_by("at").values_list("content", flat=True)) == [
            "Is the river frozen?",
            "From a pipe.",
            "And now?",
        ]
    assert arbor("agent", "show", vega, "--json").json["waiting_messages"] == 3


def test_the_audit_log_names_the_shell_user(arbor: Arbor, vega: str) -> None:
    arbor("agent", "pause", vega)
    with tenant_transaction(tenant_by_slug("acme").id):
        actors = set(AuditEvent.objects.values_list("actor", flat=True))
        actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert len(actors) == 1
    assert actors.pop().startswith("cli:")
    assert actions == [AuditAction.AGENT_CREATED, AuditAction.AGENT_STARTED, AuditAction.AGENT_PAUSED]


def test_creating_and_starting_is_one_step(
    arbor: Arbor, one_tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr(lifecycle, "start_agent", fail)
    with pytest.raises(RuntimeError):
        arbor("agent", "create", "Vega", "--template", "Scout", "--start")
    with tenant_transaction(tenant_by_slug("acme").id):
        assert not Agent.objects.exists()


def test_an_agent_is_found_in_whichever_tenant_it_lives(arbor: Arbor, two_tenants: tuple[str, str]) -> None:
    arbor("agent", "create", "Vega", "--template", "Scout", "--tenant", "globex")
    assert arbor("agent", "show", "Vega", "--json").json["tenant"] == "globex"
    looks = PlatformEvent.objects.using(OPS).filter(action=AuditAction.CROSS_TENANT_VIEW)
    assert [look.message for look in looks] == ["finding the agent 'Vega' by its name"]


def test_a_name_that_two_tenants_use_is_not_guessed(arbor: Arbor, two_tenants: tuple[str, str]) -> None:
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
        (["create", "Vega", "--template", "Scout"], 2, "several tenants (acme, globex)"),
        (["create", "Vega", "--template", "Scout", "--tenant", "acne"], 1, "no tenant 'acne'"),
        (["create", "Vega", "--template", "Scot", "--tenant", "acme"], 1, "no template 'Scot'"),
        (["create", "Vega", "--tenant", "acme"], 2, "Missing option '--template'"),
        (["create", "Vega", "--template", "Scout", "--interval", "soon"], 2, "write 30s, 5m, 1h or 2d"),
    ],
)
def test_a_wrong_command_explains_itself_with_its_exit_code(
    arbor: Arbor, two_tenants: tuple[str, str], arguments: list[str], code: int, message: str
) -> None:
    ran = arbor("agent", *arguments)
    assert ran.code == code
    assert message in " ".join(ran.err.split())


def test_before_the_first_tenant_the_command_says_how_to_make_one(arbor: Arbor, database: None) -> None:
    ran = arbor("agent", "create", "Vega", "--template", "Scout")
    assert (ran.code, "arbor tenant create SLUG" in ran.err) == (1, True)
