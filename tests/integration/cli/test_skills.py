"""`arbor skill` and `arbor agent skill`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.knowledge.services import skills
from tests.integration.cli.conftest import Arbor
from tests.integration.skills.conftest import WriteSkill, skill_text, write_skill

__all__ = ["write_skill"]


def test_skills_are_added_chosen_and_deleted(
    arbor: Arbor, one_tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No skill yet" in arbor("skill", "list").out
    file = tmp_path / "SKILL.md"
    file.write_text(skill_text("lamps"))
    assert "lamps 1 is valid" in arbor("skill", "check", str(file)).out
    assert json.loads(arbor("skill", "add", str(file), "--json").out)["name"] == "lamps"
    assert arbor("skill", "add", str(file)).code == 1
    file.write_text(skill_text("lamps", "Dim them.", version="2"))
    assert "Changed the skill lamps 2" in arbor("skill", "add", str(file), "--replace").out

    assert arbor("agent", "create", "Vega", "--template", "Scout").code == 0
    assert "has no skills, and can have 5" in " ".join(arbor("agent", "skill", "list", "Vega").out.split())
    chosen = arbor("agent", "skill", "set", "Vega", "lamps", "--json").json
    assert [(skill["name"], skill["agents"]) for skill in chosen["skills"]] == [("lamps", 1)]
    assert arbor("skill", "list", "--json").json["skills"][0]["agents"] == 1
    shown = arbor("skill", "show", "lamps", "--json").json
    assert (shown["agents"], [version["version"] for version in shown["versions"]]) == (["Vega"], ["2", "1"])
    out = arbor("skill", "show", "lamps").out
    assert ("Used by Vega." in out, "Versions: 2" in out) == (True, True)
    monkeypatch.setattr(skills, "USERS_SHOWN", 0)
    monkeypatch.setattr(skills, "VERSIONS_SHOWN", 1)
    assert "Versions: the latest 1 of 2" in arbor("skill", "show", "lamps").out
    shown = arbor("skill", "show", "lamps", "--json").json
    assert (shown["agents_total"], len(shown["versions"]), shown["versions_total"]) == (1, 1, 2)
    monkeypatch.undo()
    assert "in use by Vega" in arbor("skill", "delete", "lamps").err
    assert arbor("agent", "skill", "set", "Vega", "--json").json["skills"] == []
    assert arbor("skill", "delete", "lamps").code == 0


def test_global_skills_are_loaded(arbor: Arbor, one_tenant: str, write_skill: WriteSkill) -> None:
    write_skill("lamps")
    write_skill("broken", text="no front matter")
    loaded = arbor("skill", "load", "--json").json
    assert (loaded["added"], len(loaded["unreadable"])) == (["lamps"], 1)
    assert "unchanged: 1" in arbor("skill", "load").out
    assert arbor("skill", "list", "--json").json["skills"][0]["origin"] == "global"


def test_an_invalid_file_lists_its_faults(arbor: Arbor, tmp_path: Path) -> None:
    file = tmp_path / "SKILL.md"
    file.write_text("---\nname: Lamps\n---\nLight them.")
    ran = arbor("skill", "check", str(file))
    assert ran.code == 1
    assert "line 2, description: is required" in ran.err
