"""`arbor ops pipeline`: validation, dry run and drawing of a graph."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.db import connections

from apps.agents.models import Agent
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from tests.integration.cli.conftest import Arbor

OWN = """digraph own {
    begin [shape=Mdiamond]; look [type="observe", label="Look <around>"]; good [shape=Msquare]; begin -> look -> good;
}"""
BROKEN = 'digraph own { begin [shape=Mdiamond]; look [type="fly"]; good [shape=Msquare]; begin -> look; }'


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.dot"
    path.write_text(OWN)
    return str(path)


def test_the_default_graph_is_valid(arbor: Arbor) -> None:
    ran = arbor("ops", "pipeline", "validate", "--json")

    assert (ran.code, ran.json["valid"], ran.json["faults"]) == (0, True, [])
    assert {"observe", "llm_goal", "check_loop", "record", "done"} <= set(ran.json["nodes"])
    assert "valid: heartbeat" in arbor("ops", "pipeline", "validate").out


def test_an_empty_name_is_no_graph(arbor: Arbor, one_tenant: str) -> None:
    refused = arbor("ops", "pipeline", "validate", "")
    assert (refused.code, "there is no agent" in refused.err) == (1, True)


def test_every_fault_of_a_graph_is_listed_and_fails(arbor: Arbor, tmp_path: Path) -> None:
    path = tmp_path / "broken.dot"
    path.write_text(BROKEN)

    ran = arbor("ops", "pipeline", "validate", str(path), "--json")

    assert (ran.code, ran.json["valid"]) == (1, False)
    assert len(ran.json["faults"]) == 4
    assert any("no handler is called 'fly'" in fault for fault in ran.json["faults"])
    printed = arbor("ops", "pipeline", "validate", str(path))
    assert (printed.code, "no handler is called 'fly'" in printed.out) == (1, True)
    assert arbor("ops", "pipeline", "run", "--dry", str(path)).code == 1
    assert arbor("ops", "pipeline", "viz", str(path)).code == 1


def test_a_graph_is_read_from_standard_input(arbor: Arbor) -> None:
    assert arbor("ops", "pipeline", "validate", "-", "--json", stdin=OWN).json["name"] == "own"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("validate", "gone.dot"), 1, "there is no file gone.dot"),
        (("run",), 2, "Missing option '--dry'"),
        (("run", "--dry", "--outcome", "act"), 2, "--outcome takes NAME=VALUE, got 'act'"),
        (("run", "--dry", "--outcome", "fly=success"), 2, "has no node 'fly'; its nodes: "),
        (
            ("run", "--dry", "--outcome", "act=maybe"),
            2,
            "an outcome is one of success, failure, retry, partial",
        ),
        (("run", "--dry", "--mode", "dream"), 2, "'dream' is not one of"),
        (("run", "--dry", "--set", "round_trip=two"), 1, "round_trip must be of type int, like 1, got 'two'"),
    ],
)
def test_an_invalid_command_explains_its_error(
    arbor: Arbor, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ran = arbor("ops", "pipeline", *arguments)

    assert (ran.code, message in ran.err) == (code, True)


def test_a_file_that_is_no_text_is_refused(arbor: Arbor, tmp_path: Path) -> None:
    path = tmp_path / "noise.dot"
    path.write_bytes(b"\xff\xfe\x00")

    ran = arbor("ops", "pipeline", "validate", str(path))

    assert (ran.code, "must be text in UTF-8" in ran.err) == (1, True)


def test_a_dry_run_shows_its_path_and_writes_no_row(arbor: Arbor, tmp_path: Path) -> None:
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps([{"thinking": "hm", "actions": ["recall"]}, "no", {"thinking": "so"}]))

    ran = arbor(
        "ops", "pipeline", "run", "--dry", "--mode", "goal_pursuit", "--reply", str(replies), "--json"
    )

    path = [(visit["node"], visit["outcome"]) for visit in ran.json["path"]]
    assert ran.code == 0
    assert (ran.json["exit"], ran.json["outcome"]) == ("done", "success")
    assert [outcome for node, outcome in path if node == "process"] == ["success", "retry", "success"]
    assert [node for node, _ in path if node == "check_loop"] == ["check_loop", "check_loop"]
    with connections["ops"].cursor() as cursor:
        cursor.execute("SELECT count(*) FROM heartbeats_heartbeat")
        assert cursor.fetchone() == (0,)
    printed = arbor("ops", "pipeline", "run", "--dry", "--outcome", "llm_reflect=failure")
    assert (printed.code, "exit failed: failure" in printed.out) == (0, True)


def test_a_dry_run_starts_at_a_given_round_trip(arbor: Arbor, tmp_path: Path) -> None:
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps([{"thinking": "hm", "actions": ["recall"]}, {"thinking": "so"}]))
    options = ("--reply", str(replies), "--set", "round_trip=2", "--prefer", "act=done", "--json")

    ran = arbor("ops", "pipeline", "run", "--dry", *options)

    assert ran.code == 0, ran.err
    assert any("goes on to round trip 3" in visit["notes"] for visit in ran.json["path"])


def test_a_dry_run_without_an_exit_fails(arbor: Arbor, own: str) -> None:
    ran = arbor("ops", "pipeline", "run", "--dry", own, "--outcome", "look=failure")

    assert (ran.code, "nothing leads on from node look after failure" in ran.out) == (1, True)


def test_a_graph_is_drawn_as_svg(arbor: Arbor, own: str, tmp_path: Path) -> None:
    file = tmp_path / "own.svg"

    assert arbor("ops", "pipeline", "viz", own, "-o", str(file)).code == 0
    svg = file.read_text()
    root = ElementTree.fromstring(svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "Look" in svg
    assert "&lt;around&gt;" in svg
    assert arbor("ops", "pipeline", "viz", own).out == svg
    assert arbor("ops", "pipeline", "viz", own, "--json").json["svg"] == svg
    assert arbor("ops", "pipeline", "viz", own, "-o", str(file), "--json").json["file"] == str(file)
    refused = arbor("ops", "pipeline", "viz", own, "-o", str(tmp_path / "no" / "x.svg"))
    assert (refused.code, refused.err.startswith("arbor: ")) == (1, True)


def test_an_agents_own_graph_replaces_the_default(arbor: Arbor, one_tenant: str) -> None:
    arbor("agent", "create", "Vega", "--template", "Researcher")
    assert arbor("ops", "pipeline", "validate", "Vega", "--json").json["name"] == "heartbeat"
    with tenant_transaction(tenant_by_slug(one_tenant).id):
        Agent.objects.filter(name="Vega").update(pipeline=OWN)

    assert arbor("ops", "pipeline", "validate", "Vega", "--json").json["name"] == "own"
    assert arbor("ops", "pipeline", "validate", "Nobody").code == 1
