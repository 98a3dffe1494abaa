"""Targets of monkeypatches: modules that mypy checks, never dotted strings."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
#: In the text of every module with such a target.
DOTTED = re.compile(r"(set|del)attr\(\s*[frbu]*[\"']")


def dotted_targets(source: str) -> list[str]:
    """Return the targets that a module's monkeypatches name by a dotted string."""
    targets: list[str] = []
    if not DOTTED.search(source):
        return targets
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr" | "delattr"), args=[ast.Constant(value=str(target)), *_]
            ):
                targets.append(target)
    return targets


def test_a_dotted_target_is_found() -> None:
    assert dotted_targets(
        'monkeypatch.setattr("arbor.ids.uuid7", None)\npatch.setattr(ids, "uuid7", None)'
    ) == ["arbor.ids.uuid7"]


def test_monkeypatches_name_modules_not_strings() -> None:
    dotted = {
        str(path.relative_to(TESTS)): targets
        for path in TESTS.rglob("*.py")
        if (targets := dotted_targets(path.read_text()))
    }
    assert dotted == {}, 'write `monkeypatch.setattr(module, "name", …)`'
