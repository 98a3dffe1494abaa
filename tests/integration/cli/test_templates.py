"""`arbor agent template`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.conftest import Arbor

GARDENER = """---
name: Gardener
version: "{version}"
character: {{name: Gardener}}
actions: [rest, recall]
---

## Description

Waters what others planted. And waits.
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gardener.md"
    path.write_text(GARDENER.format(version=1))
    return path


def test_templates_are_listed_and_shown(arbor: Arbor, one_tenant: str) -> None:
    templates = arbor("agent", "template", "list", "--json").json["templates"]
    assert {template["name"] for template in templates} >= {"Scout", "Monitor"}
    assert "Scout" in arbor("agent", "template", "list").out
    shown = arbor("agent", "template", "show", "scout", "--json").json
    assert shown["source_text"].startswith("---\nname: Scout")
    assert "## Instructions" in arbor("agent", "template", "show", "Scout").out


def test_a_tenants_own_template_is_added_and_replaced(arbor: Arbor, one_tenant: str, file: Path) -> None:
    assert arbor("agent", "template", "add", str(file), "--json").json["version"] == "1"
    again = arbor("agent", "template", "add", str(file))
    assert (again.code, "already" in again.err) == (1, True)
    file.write_text(GARDENER.format(version=2))
    assert arbor("agent", "template", "add", str(file), "--replace", "--json").json["version"] == "2"
    assert arbor("agent", "template", "show", "Gardener", "--json").json["origin"] == "user"


def test_with_several_tenants_the_built_in_templates_are_listed(
    arbor: Arbor, two_tenants: tuple[str, str], file: Path
) -> None:
    arbor("agent", "template", "add", str(file), "--tenant", "acme")
    ran = arbor("agent", "template", "list", "--json")
    assert "Gardener" not in ran.out
    assert "--tenant" in ran.err
    assert "Gardener" in arbor("agent", "template", "list", "--tenant", "acme").out
    assert "Gardener" not in arbor("agent", "template", "list", "--tenant", "globex").out
    assert arbor("agent", "template", "show", "Scout").code == 0
    assert arbor("agent", "template", "show", "Gardener").code == 2


def test_validating_lists_every_fault_with_its_line(arbor: Arbor, file: Path) -> None:
    assert arbor("agent", "template", "validate", str(file), "--json").json["valid"] is True
    file.write_text(GARDENER.format(version=1).replace("rest", "fly").replace("name: Gardener\nv", "v"))
    ran = arbor("agent", "template", "validate", str(file))
    assert ran.code == 1
    assert "line 4" in ran.err
    assert "unknown action 'fly'" in ran.err
    assert "name: is required" in ran.err


def test_without_templates_the_list_says_what_to_do(arbor: Arbor, database: None) -> None:
    assert "seed_templates" in arbor("agent", "template", "list").out
