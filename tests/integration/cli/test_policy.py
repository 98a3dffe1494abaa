"""`arbor agent perceive`, `policy`, `cycle`, `replay` and `show`, `arbor tenant limit` and `energy`."""

from __future__ import annotations

import pytest

from tests.integration.cli.conftest import Arbor


def test_an_agent_perceives(arbor: Arbor, active_vega: str) -> None:
    perceived = arbor(
        "agent", "perceive", active_vega, "It snows.", "--urgent", "--detail", '{"at": "pier"}', "--json"
    ).json
    assert (perceived["kind"], perceived["urgent"], perceived["agent_status"]) == (
        "environment",
        True,
        "active",
    )
    assert "due now" in arbor("agent", "perceive", active_vega, "Stop.", "--kind", "interrupt").out
    assert arbor("agent", "perceive", active_vega, "x", "--kind", "user_message").code == 2
    assert arbor("agent", "perceive", active_vega, "x", "--detail", "[1]").code == 2
    for unstorable, code in (("[" * 20_000, 2), ('{"a": "\\ud800"}', 1), ('{"a": NaN}', 1)):
        ran = arbor("agent", "perceive", active_vega, "x", "--detail", unstorable)
        assert ran.code == code, ran.err
    assert arbor("agent", "perceive", active_vega, " ").code == 1


def test_a_policy_is_set_and_shown(arbor: Arbor, active_vega: str) -> None:
    options = ["--hours", "08:00-22:00", "--time-zone", "Europe/Berlin", "--daily-usd", "0.5", "--steady"]
    ran = arbor("agent", "policy", "set", active_vega, *options)
    assert ran.code == 0, ran.err
    policy = arbor("agent", "policy", "show", active_vega, "--json").json
    assert (policy["active_from"], policy["time_zone"], policy["adaptive"]) == (
        "08:00:00",
        "Europe/Berlin",
        False,
    )
    models = ("agent", "policy", "set", active_vega, "--models")
    assert arbor(*models, '{"reflex": ["ollama/small"]}', "--json").json["tier_models"]
    assert arbor(*models, "none", "--json").json["tier_models"] == {}
    assert "0.5000" not in arbor("agent", "policy", "show", active_vega).out
    assert arbor("agent", "policy", "set", active_vega, "--daily-usd", "none", "--hours", "none").code == 0
    policy = arbor("agent", "policy", "show", active_vega, "--json").json
    assert (policy["active_from"], policy["daily_usd"], policy["time_zone"]) == (None, None, "Europe/Berlin")


def test_energy_of_a_tenant_and_an_agent_is_set(arbor: Arbor, active_vega: str) -> None:
    shown = arbor("tenant", "energy", "acme").out
    assert "Agents of acme: energy: 10 come back at each heartbeat, 20 at most." in " ".join(shown.split())
    assert arbor("tenant", "energy", "acme", "--max-energy", "30", "--cost", "recall=3").code == 0
    set_own = ("agent", "policy", "set", active_vega)
    ran = arbor(*set_own, "--regeneration", "7.5", "--cost", "reflect=4", "--cost", "recall=2")
    assert ran.code == 0, ran.err
    shown = " ".join(arbor("agent", "policy", "show", active_vega).out.split())
    assert "7.5 come back at each heartbeat, 30 at most; recall costs 2; reflect costs 4" in shown
    assert "energy 10 of 30" in arbor("agent", "show", active_vega).out

    assert arbor(*set_own, "--cost", "recall=none", "--regeneration", "none").code == 0
    assert arbor("agent", "policy", "show", active_vega, "--json").json["energy"] == {"costs": {"reflect": 4}}
    refused = arbor(*set_own, "--cost", "recall=31")
    assert (refused.code, "cost of recall is 0 to the maximum of 30, got 31" in refused.err) == (1, True)
    assert "write recall=2" in arbor(*set_own, "--cost", "recall").err


def test_a_policy_is_shown_with_its_effective_values(arbor: Arbor, active_vega: str) -> None:
    shown = " ".join(arbor("agent", "policy", "show", active_vega).out.split())
    for line in (
        "budget energy: 10 come back at each heartbeat, 20 at most",
        "active at any hour",
        "while nothing happens heartbeats get rarer",
        "US dollars a day unlimited",
        "further round trips of a heartbeat 9, the installation's",
    ):
        assert line in shown
    assert arbor("tenant", "limit", "acme", "--usd", "25").code == 0
    options = ("--budget", "ticks", "--hours", "22:00-06:00", "--daily-usd", "0.5", "--follow-ups", "0")
    shown = " ".join(arbor("agent", "policy", "set", active_vega, *options).out.split())
    for line in (
        "ticks a cycle",
        "active 22:00 to 06:00 UTC",
        "US dollars a day 0.5; its tenant's agents together 25",
        "further round trips of a heartbeat 0",
    ):
        assert line in shown


@pytest.mark.parametrize(
    ("options", "code", "fault"),
    [
        (["--time-zone", "Mars/Olympus"], 1, "Europe/Berlin"),
        (["--hours", "08:00-08:00"], 1, "08:00 twice"),
        (["--hours", "8 to 9"], 2, "08:00-22:00"),
        (["--daily-heartbeats", "-1"], 1, "or none, got"),
        (["--daily-usd", "nan"], 1, "or none, got"),
        (["--daily-tokens", "many"], 2, "none for no limit"),
        (["--allowance", "0"], 1, "1 to 256"),
        (["--follow-ups", "10"], 1, "0 to 9"),
        (["--models", '{"deep": ["openai/x"]}'], 1, "a tier is"),
        (["--models", '{"reflex": ["nonsense"]}'], 1, "provider/model"),
        (["--models", "{"], 2, "not JSON"),
        ([], 2, "name a field to change"),
    ],
)
def test_an_invalid_policy_is_refused(
    arbor: Arbor, active_vega: str, options: list[str], code: int, fault: str
) -> None:
    ran = arbor("agent", "policy", "set", active_vega, *options)
    assert ran.code == code
    assert fault in ran.err


def test_a_tenant_is_limited(arbor: Arbor, one_tenant: str) -> None:
    ran = arbor("tenant", "limit", one_tenant, "--heartbeats", "1000", "--usd", "2.5", "--json").json
    assert (ran["daily_heartbeats"], ran["daily_usd"]) == (1000, "2.5")
    assert "heartbeats unlimited" in arbor("tenant", "limit", one_tenant, "--heartbeats", "none").out
    assert arbor("tenant", "limit", one_tenant, "--heartbeats", "-5").code == 1
    assert arbor("tenant", "limit", "nobody", "--heartbeats", "5").code == 1


def test_a_cycle_runs_and_its_heartbeats_can_be_replayed(arbor: Arbor, active_vega: str) -> None:
    ran = arbor("agent", "cycle", active_vega, "--ticks", "3", "--json")
    assert ran.code == 0, ran.err
    cycle = ran.json
    assert (cycle["allocated"], cycle["ended"]) == (3, "used up")
    first = cycle["ticks"][0]["heartbeat_id"]
    replayed = arbor("agent", "replay", first, "--model", "reflex/default", "--json")
    assert replayed.code == 0, replayed.out
    replay = replayed.json
    assert replay["same"]
    assert [decision["action"] for decision in replay["other"]["decisions"]] == [
        decision["action"] for decision in replay["decisions"]
    ]
    assert "the same" in arbor("agent", "replay", first).out
    assert arbor("tenant", "create", "globex").code == 0
    shown = arbor("agent", "trace", active_vega, "--heartbeat", str(cycle["ticks"][0]["number"])).out
    assert f"id {first[-8:]}" in shown
    assert "the same" in arbor("agent", "replay", first[-8:]).out
    missing = arbor("agent", "replay", active_vega)
    assert missing.code == 1
    assert "no tenant has a heartbeat 'Vega': give an id, or its last 8 characters" in missing.err
    assert arbor("agent", "cycle", active_vega).code == 1
    assert "ran 1 heartbeat and" in arbor("agent", "cycle", active_vega, "--ticks", "1").out


def test_usage_and_notices_are_shown(arbor: Arbor, active_vega: str) -> None:
    assert arbor("agent", "run", active_vega, "--here").code == 0
    shown = arbor("agent", "show", active_vega, "--json").json
    assert shown["used_today"]["heartbeats"] == 1
    assert shown["used_today"]["level"] == "normal"
    assert (shown["energy_delta_24h"] < 0, shown["reach_outs_24h"]) == (True, 0)
    details = arbor("agent", "show", active_vega).out
    assert "today: 1 heartbeat," in details
    assert f"last 24 h: {shown['energy_delta_24h']:g} energy a heartbeat, 0 messages sent" in details
    assert set(arbor("status", "--json").json["notices"]) >= {"loop", "budget"}
