"""`arbor contact webhook`."""

from __future__ import annotations

from tests.integration.cli.conftest import Arbor


def test_a_webhook_is_created_listed_paused_and_deleted(arbor: Arbor, vega: str) -> None:
    assert "No webhooks" in arbor("contact", "webhook", "list").out
    url = ("--url", "https://example.org/s3cret")
    filters = ("--signal", "memory.goal_*", "--signal", "agent.paused", "--agent", vega)
    made = arbor("contact", "webhook", "create", "ops", *url, *filters, "--json").json
    assert made["secret"].startswith("whsec_")
    (listed,) = arbor("contact", "webhook", "list", "--json").json["webhooks"]
    assert listed == {name: value for name, value in made.items() if name != "secret"}
    assert (listed["url"], listed["agent"], listed["active"]) == ("https://example.org/…", vega, True)
    assert listed["signals"] == ["memory.goal_*", "agent.paused"]
    assert not arbor("contact", "webhook", "pause", "ops", "--json").json["active"]
    assert "paused" in arbor("contact", "webhook", "list").out
    assert arbor("contact", "webhook", "resume", "ops", "--json").json["active"]
    assert arbor("contact", "webhook", "delete", "ops", "--json").json["deleted"]["name"] == "ops"
    missing = arbor("contact", "webhook", "pause", "ops")
    assert (missing.code, "'ops'" in missing.err) == (1, True)


def test_an_unknown_signal_names_the_command_of_the_catalogue(arbor: Arbor, one_tenant: str) -> None:
    ran = arbor("contact", "webhook", "create", "ops", "--url", "https://example.org", "--signal", "x")
    assert ran.code == 1
    assert "arbor signals --names" in ran.err
    shown = arbor("contact", "webhook", "create", "ops", "--url", "https://example.org")
    assert "whsec_" in shown.out
