"""`arbor agent subscription`."""

from __future__ import annotations

from tests.integration.cli.conftest import Arbor


def test_subscriptions_are_added_listed_and_removed(arbor: Arbor, one_tenant: str) -> None:
    for name in ("Vega", "Lyra"):
        assert arbor("agent", "create", name, "--template", "Scout").code == 0
    assert "is subscribed to no signals" in " ".join(
        arbor("agent", "subscription", "list", "Vega").out.split()
    )
    added = arbor("agent", "subscription", "add", "Vega", "memory.goal_*", "--peer", "Lyra", "--json").json
    assert (added["names"], added["source"], added["peer"]) == (["memory.goal_*"], "peer", "Lyra")
    assert arbor("agent", "subscription", "add", "Vega", "memory.heartbeat", "--own").code == 0
    both = arbor("agent", "subscription", "add", "Vega", "memory.heartbeat", "--own", "--peer", "Lyra")
    assert (both.code, "not both" in both.err) == (2, True)
    assert (
        "all others about one agent" in arbor("agent", "subscription", "add", "Vega", "memory.recalled").err
    )
    assert "no signal" in arbor("agent", "subscription", "add", "Vega", "memory.nothing", "--own").err
    listed = arbor("agent", "subscription", "list", "Vega", "--json").json["subscriptions"]
    assert [row["source"] for row in listed] == ["peer", "self"]
    assert arbor("agent", "subscription", "remove", "Vega", added["id"][-12:]).code == 0
    assert arbor("agent", "subscription", "remove", "Vega", added["id"]).code == 1
