"""`arbor signals`: the latest, those after a cursor, live, and the catalogue."""

from __future__ import annotations

import json
import time

import pytest

from arbor.signals import CATALOGUE
from tests.integration.cli.conftest import Arbor


def test_signals_are_listed_and_continued(arbor: Arbor, one_tenant: str) -> None:
    assert "No signals" in arbor("signals").out
    assert arbor("agent", "create", "Ada", "--template", "Researcher").code == 0
    listed = arbor("signals", "--json").json
    assert {line["agent"] for line in listed["signals"]} == {"Ada"}
    assert listed["signals"][-1]["name"] == "agent.created"

    assert arbor("agent", "start", "Ada").code == 0
    later = arbor("signals", "--json", "--after", listed["cursor"]).json
    assert [line["name"] for line in later["signals"]] == ["agent.started"]
    assert arbor("signals", "--json", "--after", later["cursor"]).json["signals"] == []
    table = arbor("signals", "--agent", "Ada", "--name", "agent", "--limit", "1").out
    assert "agent.started" in table
    assert "agent.created" not in table


def test_new_signals_are_followed(arbor: Arbor, one_tenant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = arbor("signals", "--json").json["cursor"]
    assert arbor("agent", "create", "Ada", "--template", "Researcher").code == 0

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    ran = arbor("signals", "--follow", "--json", "--after", cursor, "--name", "agent.created")
    assert ran.code == 130
    (line,) = ran.out.splitlines()
    assert json.loads(line)["data"]["template"] == "Researcher"


def test_invalid_names_and_cursors_are_explained(arbor: Arbor, one_tenant: str) -> None:
    refused = arbor("signals", "--name", "memory.nothing")
    assert (refused.code, "arbor signals --names" in refused.err) == (1, True)
    assert "a cursor is the id of a signal" in arbor("signals", "--after", "yesterday").err


def test_the_catalogue_is_listed(arbor: Arbor, one_tenant: str) -> None:
    assert set(arbor("signals", "--names", "--json").json["names"]) == set(CATALOGUE)
    assert "memory.heartbeat" in arbor("signals", "--names").out
