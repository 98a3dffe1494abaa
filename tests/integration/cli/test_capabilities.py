"""`arbor agent capability`."""

from __future__ import annotations

from tests.integration.cli.conftest import Arbor

#: Limits of every kind.
LIMITS = (
    *("--from", "2026-01-01", "--expires", "30d", "--uses", "9", "--rate-uses", "5", "--rate-period", "1h"),
    *("--hours", "09:00-17:00 mon,fri", "--time-zone", "Europe/Berlin", "--depth", "2"),
)


def test_a_capability_is_granted_explained_delegated_and_revoked(arbor: Arbor, vega: str) -> None:
    arbor("agent", "create", "Lyra", "--template", "Monitor")
    denied = arbor("agent", "capability", "why", vega, "arbor://fs/read/docs/a")
    assert (denied.code, "no grant of yours covers" in denied.out) == (1, True)
    grant = arbor("agent", "capability", "grant", vega, "arbor://fs/read/docs/*", "--json").json
    assert (grant["resource"], grant["status"], grant["depth"]) == ("arbor://fs/read/docs/*", "in_force", 3)
    assert f"by {grant['id']}" in arbor("agent", "capability", "why", vega, "arbor://fs/read/docs/a").out
    repeated = arbor("agent", "capability", "grant", vega, "arbor://fs/read/docs/*")
    assert (repeated.code, grant["id"] in repeated.err) == (1, True)

    part = ("--to", "Lyra", "--resource", "arbor://fs/read/docs/a")
    delegated = arbor("agent", "capability", "delegate", vega, grant["id"], *part, *LIMITS, "--json").json
    assert (delegated["holder"], delegated["parent"], delegated["depth"]) == ("Lyra", grant["id"], 2)
    assert delegated["constraints"]["rate"] == [5, 3600]
    assert delegated["constraints"]["window"] == ["09:00", "17:00", [0, 4], "Europe/Berlin"]
    wider = arbor(
        "agent", "capability", "delegate", vega, grant["id"], "--to", "Lyra", "--resource", "arbor://fs/**"
    )
    assert (wider.code, "is not within" in wider.err) == (1, True)

    revoked = arbor("agent", "capability", "revoke", vega, grant["id"], "--reason", "no longer needed")
    assert "and 1 delegated from it" in revoked.out
    assert grant["id"] not in str(arbor("agent", "capability", "list", vega, "--json").json)
    listed = arbor("agent", "capability", "list", vega, "--revoked", "--json").json["capabilities"]
    assert {row["revoked_reason"] for row in listed if row["id"] == grant["id"]} == {"no longer needed"}
    assert "no longer needed" in arbor("agent", "capability", "why", vega, "arbor://fs/read/docs/a").out


def test_an_action_is_granted_by_its_name_within_limits(arbor: Arbor, vega: str) -> None:
    grant = arbor("agent", "capability", "grant", vega, "reprioritize", *LIMITS).out
    assert "arbor://actions/execute/reprioritize" in grant
    assert "9 uses" in grant
    assert "1 use\n" in arbor("agent", "capability", "grant", vega, "write_entry", "--uses", "1").out
    shown = arbor("agent", "capability", "list", vega).out
    assert "reprioritize" in shown
    for invalid in (
        ("--hours", "nine to five"),
        ("--rate-uses", "5"),
        ("--time-zone", "Nowhere", "--hours", "09:00-17:00"),
    ):
        assert arbor("agent", "capability", "grant", vega, "observe", *invalid).code == 1
