"""`arbor contact channel`, `arbor inbox list` and `arbor contact outbox`."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from apps.agents.models import Agent, Percept
from apps.contacts.models import Channel, OutboxMessage
from apps.contacts.services import outbox
from apps.fleet.contact import answer_message
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from arbor.contacts.values import DeliveryStatus
from arbor.errors import Invalid
from arbor.heartbeat.views import PERCEPT_LENGTH
from config.cli.checks import processes
from tests.factories.contacts import OutboxMessageFactory
from tests.integration.cli.conftest import Arbor
from tests.integration.contacts.conftest import make_agent
from tests.integration.contacts.receivers import run_web_receiver
from tests.support.rows import reload


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    """Return an agent of the only tenant."""
    return make_agent(tenant, "Vega")


def store_message(agent: Agent, **values: Any) -> OutboxMessage:
    with tenant_transaction(agent.tenant_id):
        message: OutboxMessage = OutboxMessageFactory.create(agent=agent, **values)
    return message


def test_a_channel_is_added_listed_switched_and_removed(arbor: Arbor, agent: Agent) -> None:
    assert "agents write to the inbox" in arbor("contact", "channel", "list").out
    ran = arbor(
        "contact",
        "channel",
        "add",
        "ops",
        "--kind",
        "webhook",
        "--to",
        "https://example.org/hook",
        "--agent",
        "Vega",
        "--json",
    ).json
    assert ran["secret"].startswith("whsec_")
    (listed,) = arbor("contact", "channel", "list", "--json").json["channels"]
    assert (listed["name"], listed["agent"], listed["enabled"]) == ("ops", "Vega", True)
    assert ran["secret"] not in arbor("contact", "channel", "list").out
    assert "ops is disabled" in arbor("contact", "channel", "disable", "ops").out
    assert arbor("contact", "channel", "enable", "ops", "--json").json["enabled"] is True
    assert "ops is removed" in arbor("contact", "channel", "remove", "ops").out
    with tenant_transaction(agent.tenant_id):
        assert not Channel.objects.exists()


def test_the_secret_of_a_new_webhook_is_shown_once(arbor: Arbor, agent: Agent) -> None:
    ran = arbor(
        "contact", "channel", "add", "ops", "--kind", "webhook", "--to", "https://example.org/hook"
    ).out
    assert "whsec_" in ran
    assert "It is not shown again" in ran


def test_lists_show_only_the_host_of_a_webhook_url(arbor: Arbor, agent: Agent) -> None:
    secret = "https://example.org/s3cret-path?token=s3cret-token"
    added = arbor("contact", "channel", "add", "ops", "--kind", "webhook", "--to", secret, "--json")
    failed = store_message(agent, kind="webhook", target=secret, status="failed", sent_at=None)
    store_message(agent, kind="email", target="ann@example.org")
    lists = [
        arbor("contact", rows, "list", *form) for rows in ("channel", "outbox") for form in ((), ("--json",))
    ]
    assert all(ran.code == 0 for ran in lists)
    retried = arbor("contact", "outbox", "retry", str(failed.id), "--json")
    assert "s3cret" not in "".join(ran.out for ran in (added, *lists, retried))
    assert added.json["target"] == "https://example.org/…"
    messages = arbor("contact", "outbox", "list", "--json").json["messages"]
    assert {message["target"] for message in messages} == {"https://example.org/…", "ann@example.org"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "webhook", "--to", "http://example.org"), "begins with https://"),
        (("--kind", "webhook", "--to", "https://me:pw@example.org"), "must not contain a user and password"),
        (("--kind", "webhook"), "begins with https://"),
        (("--kind", "email", "--to", "ann"), "one address, such as ann@example.org"),
        (("--kind", "email", "--to", "a@example.org, b@example.org"), "one address"),
        (("--kind", "email", "--to", "a@example.org\nBcc: b@example.org"), "printable characters"),
        (("--kind", "inbox", "--to", "here"), "the inbox has no target"),
    ],
)
def test_an_invalid_target_is_refused(
    arguments: tuple[str, ...], message: str, arbor: Arbor, agent: Agent
) -> None:
    ran = arbor("contact", "channel", "add", "x", *arguments)
    assert ran.code == 1
    assert message in " ".join(ran.err.split())


def test_a_channel_name_in_use_is_refused(arbor: Arbor, agent: Agent) -> None:
    for code in (0, 1):
        ran = arbor("contact", "channel", "add", "me", "--kind", "inbox")
        assert ran.code == code
    assert "there is a channel 'me' already" in ran.err
    assert "there is no channel 'you'; there is: me" in arbor("contact", "channel", "test", "you").err


def test_a_channel_is_tested(arbor: Arbor, agent: Agent, settings: Any) -> None:
    settings.ARBOR_WEBHOOK_ALLOW_HTTP = settings.ARBOR_WEBHOOK_ALLOW_PRIVATE = True
    with run_web_receiver() as receiver:
        arbor("contact", "channel", "add", "ops", "--kind", "webhook", "--to", receiver.url)
        assert "ops works" in arbor("contact", "channel", "test", "ops").out
        assert b"Arbor tries this channel" in receiver.requests[0].body
        receiver.statuses = [500]
        ran = arbor("contact", "channel", "test", "ops")
    assert ran.code == 1
    assert "answered 500" in ran.err
    with tenant_transaction(agent.tenant_id):
        assert not OutboxMessage.objects.exists()


def test_the_inbox_is_listed_read_and_answered(arbor: Arbor, agent: Agent) -> None:
    assert "Nothing here" in arbor("inbox", "list").out
    message = store_message(agent, subject="Ice [bold]", content="The river froze.")
    assert "1 unread" in arbor("inbox", "list").out
    assert "Ice [bold]" in arbor("inbox", "list", "--agent", "Vega").out
    assert reload(message).read_at is None
    assert "The river froze." in arbor("inbox", "read", str(message.id)[-8:]).out
    assert arbor("inbox", "list", "--json").json["unread"] == 0
    assert arbor("inbox", "list", "--unread", "--json").json["messages"] == []
    assert "Vega receives the answer" in arbor("inbox", "answer", str(message.id), "Walk with care.").out
    with tenant_transaction(agent.tenant_id):
        assert Percept.objects.get().content == "> The river froze.\nWalk with care."


def test_an_unknown_message_is_not_read(arbor: Arbor, agent: Agent) -> None:
    ran = arbor("inbox", "read", "0c5512aa")
    assert ran.code == 1
    assert "this tenant has no outbox message '0c5512aa'" in ran.err
    mail = store_message(agent, kind="email", target="ann@example.org")
    assert "in the inbox of this tenant" in arbor("inbox", "read", str(mail.id)).err


def test_undelivered_messages_are_listed_retried_and_cancelled(arbor: Arbor, agent: Agent) -> None:
    assert "No messages." in arbor("contact", "outbox", "list").out
    failed = store_message(
        agent,
        kind="email",
        target="ann@example.org",
        status="failed",
        sent_at=None,
        attempts=8,
        last_error="no line",
    )
    assert "no line" in arbor("contact", "outbox", "list", "--status", "failed").out
    listed = arbor("contact", "outbox", "list", "--agent", "Vega", "--json").json
    assert (listed["failed"], listed["messages"][0]["last_error"]) == (1, "no line")
    assert arbor("contact", "outbox", "retry", str(failed.id), "--json").json["status"] == "pending"
    assert "is cancelled" in arbor("contact", "outbox", "cancel", str(failed.id)).out
    assert reload(failed).status == DeliveryStatus.CANCELLED
    assert "cannot become pending" in arbor("contact", "outbox", "retry", str(failed.id)).err


def test_status_and_doctor_report_undelivered_messages(arbor: Arbor, agent: Agent) -> None:
    store_message(agent, kind="email", status="failed", sent_at=None)
    assert arbor("status", "--json").json["outbox"]["failed"] == 1
    assert "1 failed" in arbor("status").out
    assert "1 message of agents was not delivered" in arbor("doctor").out


def test_the_doctor_says_where_the_count_of_messages_stopped(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (outbox, processes):
        monkeypatch.setattr(module, "MAX_COUNTED", 2)
    for _ in range(3):
        waiting = store_message(agent, kind="email", status="pending", sent_at=None, due_at=timezone.now())
    assert processes.check_outbox().detail == "2 or more messages waiting for the next try"
    with tenant_transaction(agent.tenant_id):
        OutboxMessage.objects.exclude(id=waiting.id).update(status="failed")
    assert processes.check_outbox().detail == "2 or more messages of agents were not delivered"


def test_messages_of_another_tenant_are_not_found(arbor: Arbor, agent: Agent, other_tenant: Tenant) -> None:
    message = store_message(agent)
    ran = arbor("inbox", "read", str(message.id), "--tenant", other_tenant.slug)
    assert ran.code == 1
    assert arbor("contact", "outbox", "list", "--tenant", other_tenant.slug, "--json").json["messages"] == []


@pytest.fixture
def two_agents(agent: Agent, other_tenant: Tenant) -> tuple[Agent, Agent]:
    """Return an agent of each of two tenants."""
    return agent, make_agent(other_tenant, "Rigel")


def slug_of(agent: Agent) -> str:
    return str(Tenant.objects.using(OPS).get(id=agent.tenant_id).slug)


def test_lists_over_several_tenants_name_the_tenant_of_each_row(
    arbor: Arbor, two_agents: tuple[Agent, Agent]
) -> None:
    slugs = {slug_of(agent) for agent in two_agents}
    for agent in two_agents:
        store_message(agent, subject=f"Of {agent.name}")
        assert (
            arbor("contact", "channel", "add", "me", "--kind", "inbox", "--tenant", slug_of(agent)).code == 0
        )
    for key, command in (
        ("messages", ("inbox", "list")),
        ("messages", ("contact", "outbox", "list")),
        ("channels", ("contact", "channel", "list")),
    ):
        ran = arbor(*command, "--json")
        assert ran.code == 0, ran.err
        assert {row["tenant"] for row in ran.json[key]} == slugs
        shown = arbor(*command).out
        assert all(slug in shown for slug in slugs)
    assert arbor("inbox", "list", "--json").json["unread"] == 2


def test_counts_beside_the_messages_of_an_agent_are_its_own(
    arbor: Arbor, agent: Agent, tenant: Tenant
) -> None:
    other = make_agent(tenant, "Lyra")
    for status in (DeliveryStatus.PENDING, DeliveryStatus.FAILED):
        store_message(agent, status=status)
    assert arbor("inbox", "list", "--agent", "Lyra", "--json").json["unread"] == 0
    listed = arbor("contact", "outbox", "list", "--agent", other.name, "--json").json
    assert (listed["waiting"], listed["failed"]) == (0, 0)
    listed = arbor("contact", "outbox", "list", "--agent", agent.name, "--json").json
    assert (listed["waiting"], listed["failed"]) == (1, 1)


def test_an_answer_of_the_greatest_length_is_quoted_shortly(agent: Agent) -> None:
    message = store_message(agent, content="The river froze. " * 30)
    with tenant_transaction(agent.tenant_id):
        for text in ("x" * PERCEPT_LENGTH, "x" * (PERCEPT_LENGTH - 20), "x"):
            percept = answer_message(message_id=message.id, text=text, actor="cli:nora")
            assert percept.content.endswith(text)
            assert len(percept.content) <= PERCEPT_LENGTH
        with pytest.raises(Invalid, match="got 8,001"):
            answer_message(message_id=message.id, text="x" * (PERCEPT_LENGTH + 1), actor="cli:nora")


def test_a_row_of_one_tenant_alone_needs_no_tenant_option(
    arbor: Arbor, two_agents: tuple[Agent, Agent]
) -> None:
    mine, other = two_agents
    message = store_message(other, content="The river froze.")
    assert "The river froze." in arbor("inbox", "read", str(message.id)[-8:]).out
    assert "Rigel receives the answer" in arbor("inbox", "answer", str(message.id), "Walk with care.").out
    failed = store_message(other, kind="email", target="ann@example.org", status="failed", sent_at=None)
    assert arbor("contact", "outbox", "retry", str(failed.id)[-8:], "--json").json["tenant"] == slug_of(other)
    assert "is cancelled" in arbor("contact", "outbox", "cancel", str(failed.id)).out
    assert arbor("contact", "channel", "add", "ops", "--kind", "inbox", "--tenant", slug_of(mine)).code == 0
    assert "ops is disabled" in arbor("contact", "channel", "disable", "ops").out
    assert "ops is removed" in arbor("contact", "channel", "remove", "ops").out
    assert "no tenant has a channel 'ops'" in arbor("contact", "channel", "test", "ops").err
    assert "no tenant has an outbox message '0c5512aa'" in arbor("inbox", "read", "0c5512aa").err


def test_a_hint_names_a_tenant_that_is_not_the_default_one(
    arbor: Arbor, two_agents: tuple[Agent, Agent], settings: Any
) -> None:
    mine, other = two_agents
    settings.ARBOR_TENANT = slug_of(mine)
    for agent, option in ((mine, ""), (other, f" --tenant {slug_of(other)}")):
        ran = arbor("contact", "channel", "add", "ops", "--kind", "inbox", "--tenant", slug_of(agent))
        assert " ".join(ran.out.split()).endswith(f"arbor contact channel test ops{option}")


def test_a_channel_name_of_two_tenants_needs_the_tenant_option(
    arbor: Arbor, two_agents: tuple[Agent, Agent]
) -> None:
    for agent in two_agents:
        ran = arbor("contact", "channel", "add", "my ops", "--kind", "inbox", "--tenant", slug_of(agent))
        assert f"arbor contact channel test 'my ops' --tenant {slug_of(agent)}" in " ".join(ran.out.split())
    ran = arbor("contact", "channel", "remove", "my ops")
    assert ran.code == 2
    assert "--tenant SLUG" in ran.err
    with tenant_transaction(two_agents[0].tenant_id):
        assert Channel.objects.exists()
