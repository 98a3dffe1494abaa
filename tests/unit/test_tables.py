"""The order of the apps in SQL: no statement names a table of a higher app."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: {(file, table): reason}
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("apps/goals/services/queries.py", "heartbeats_heartbeat"): (
        "An intent stays locked while the heartbeat that locked it is open; read beside the backlog, in one statement."
    ),
    ("apps/memories/services/graph/relations.py", "goals_goal"): (
        "Relations of the graph end at goals, beliefs and aspects."
    ),
    ("apps/memories/services/graph/relations.py", "selves_belief"): "As above.",
    ("apps/memories/services/graph/relations.py", "selves_identityaspect"): "As above.",
    ("apps/memories/services/graph/queries.py", "goals_goal"): "As above.",
    ("apps/memories/services/retention/queries.py", "goals_goal"): (
        "A memory that an open goal needs is not forgotten; the candidates are chosen by one statement."
    ),
    ("apps/memories/services/retention/queries.py", "goals_goalmemorylink"): "As above.",
    ("apps/memories/services/retention/queries.py", "contacts_chatmessage"): (
        "Purging a memory for good removes the text from the conversation that it comes from, in the same transaction."
    ),
}
_WORD = re.compile(r"\w+")


@cache
def ranks() -> dict[str, int]:
    """Return the rank of each app from the ground up, by the contract of import-linter; apps of one rank are independent."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (layers,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"] == "Apps have an order"
    )
    return {app: rank for rank, layer in enumerate(reversed(layers)) for app in layer.split(" | ")}


@cache
def table_owners() -> dict[str, str]:
    """Return the app of each table, read from the models."""
    return {
        table: file.parts[1]
        for file in sources()
        if "models" in (file.stem, file.parent.name)
        for node in ast.walk(parse(file))
        if isinstance(node, ast.ClassDef)
        for table in [declared_table(node) or f"{file.parts[1]}_{node.name.lower()}"]
    }


def declared_table(model: ast.ClassDef) -> str | None:
    """Return the `db_table` of a model's Meta, if present."""
    return next(
        (
            str(node.value.value)
            for node in ast.walk(model)
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and any(isinstance(target, ast.Name) and target.id == "db_table" for target in node.targets)
        ),
        None,
    )


@cache
def tables_above() -> list[tuple[str, str]]:
    """Return each file with the tables of higher and independent apps that its strings name."""
    owners = table_owners()
    found = []
    for file in sources():
        if len(file.parts) < 3:
            continue
        app = file.parts[1]
        named = owners.keys() & _WORD.findall((ROOT / file).read_text())
        above = {table for table in named if owners[table] != app and ranks()[owners[table]] >= ranks()[app]}
        if above:
            words = {word for text in strings(parse(file)) for word in _WORD.findall(text)}
            found += [(str(file), table) for table in sorted(above & words)]
    return found


def sources() -> Iterator[Path]:
    """Yield the modules of all apps, relative to the repository, without migrations."""
    for path in sorted((ROOT / "apps").rglob("*.py")):
        file = path.relative_to(ROOT)
        if "migrations" not in file.parts:
            yield file


def parse(file: Path) -> ast.Module:
    """Parse a module of the repository."""
    return ast.parse((ROOT / file).read_text())


def strings(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module, the fixed parts of f-strings among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_statement_names_a_table_of_a_higher_app() -> None:
    assert [reference for reference in tables_above() if reference not in EXCEPTIONS] == []


def test_each_exception_is_needed() -> None:
    assert EXCEPTIONS.keys() - set(tables_above()) == set()


@pytest.mark.parametrize(
    ("table", "app"),
    [("agents_agent", "agents"), ("heartbeats_percept", "agents"), ("memories_memory", "memories")],
)
def test_the_owner_of_a_table_is_the_app_of_its_model(table: str, app: str) -> None:
    assert table_owners()[table] == app
