"""`arbor agent tier`, `arbor self calibration`, `arbor self drift`, `arbor agent policy set --voices`."""

from __future__ import annotations

from apps.fleet.trust_scores import score_agents
from tests.integration.cli.conftest import Arbor


def test_a_tier_is_shown_set_and_listed(arbor: Arbor, vega: str) -> None:
    assert "has not scored it yet" in " ".join(arbor("agent", "tier", "show", vega).out.split())
    assert "has not changed yet" in arbor("agent", "tier", "history", vega).out
    score_agents()
    shown = arbor("agent", "tier", "show", vega, "--json").json
    assert (shown["tier"], shown["score"], shown["by_person"]) == ("probationary", 40, False)
    assert [part["part"] for part in shown["parts"]] == [
        "success",
        "uptime",
        "security",
        "calibration",
        "rollback",
    ]
    options = ("autonomous", "--reason", "knows its work")
    assert "by a person's decision" in " ".join(arbor("agent", "tier", "set", vega, *options).out.split())
    assert arbor("agent", "tier", "set", vega, "veteran", "--json").json["tier"] == "veteran"
    changes = arbor("agent", "tier", "history", vega, "--json").json["changes"]
    assert [(change["before"], change["after"]) for change in changes] == [
        ("autonomous", "veteran"),
        ("probationary", "autonomous"),
    ]
    assert changes[1]["reason"] == "knows its work"
    assert arbor("agent", "tier", "set", vega, "veteran").code == 1
    assert arbor("agent", "tier", "set", vega, "king").code == 2


def test_calibration_and_drift_are_shown(arbor: Arbor, vega: str) -> None:
    assert "has been decided and judged yet" in " ".join(arbor("self", "calibration", vega).out.split())
    assert arbor("self", "calibration", vega, "--json").json["calibrations"] == []
    assert "0% away from its birth" in " ".join(arbor("self", "drift", vega).out.split())
    drift = arbor("self", "drift", vega, "--json").json
    assert drift["drift"] == 0
    assert {part["change"] for part in drift["values"]["parts"]} == {"same"}


def test_inner_voices_are_switched_on_and_off(arbor: Arbor, vega: str) -> None:
    for voices, line in (("3", "hard decision 3"), ("0", "hard decision none")):
        shown = arbor("agent", "policy", "set", vega, "--voices", voices).out
        assert line in " ".join(shown.split())
    assert "2 to 4" in arbor("agent", "policy", "set", vega, "--voices", "1").err
