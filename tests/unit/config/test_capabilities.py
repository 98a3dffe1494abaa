"""The table of features: every command, operation, method, page and tool, or the reason why there is none."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from apps.api.api import PATH
from apps.console.navigation import SECTIONS
from apps.mcp_server.tools import TOOLS
from scripts.client_calls import openapi, operation_of, requests_of_client
from tests.support.command_tree import commands

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "capabilities.md"
DOORS = ("command", "operation", "client", "page", "tool")
_HEAD = f"| {' | '.join(DOORS)} |"
_NAMED = re.compile(r"`([^`]+)`")
_REASON = "— "

type Row = dict[str, str]


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of all tables of features: the text of each cell by its column."""
    found: list[Row] = []
    in_table = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        in_table = line == _HEAD or (in_table and line.startswith("|"))
        if in_table and line != _HEAD and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == len(DOORS), line
            found.append(dict(zip(DOORS, cells, strict=True)))
    return tuple(found)


def named(door: str) -> list[str]:
    """Return the doors of one kind that the rows name; pages are titles, without code marks."""
    cells = [row[door] for row in rows()]
    if door == "page":
        return [cell for cell in cells if cell and not cell.startswith(_REASON)]
    return [name for cell in cells for name in names_in(cell)]


def names_in(cell: str) -> list[str]:
    """Return the names in code marks of a cell, with the `A` of an operation written out."""
    return [re.sub(r" A\b", " /agents/{agent_id}", name) for name in _NAMED.findall(cell)]


def operations() -> set[str]:
    """Return all operations by method and path."""
    return {
        f"{method.upper()} {path.removeprefix(PATH)}"
        for path, methods in openapi()["paths"].items()
        for method in methods
    }


def methods() -> dict[str, str]:
    """Return the operation of each method of the client."""
    found = {}
    for name, call in requests_of_client().items():
        operation = operation_of(call.method, PATH + call.path)
        assert operation is not None
        found[name] = operation.replace(PATH, "", 1)
    return found


def existing(door: str) -> set[str]:
    """Return all that exists of a kind of doors."""
    match door:
        case "command":
            return {" ".join(path) for path in commands()}
        case "operation":
            return operations()
        case "client":
            return set(methods())
        case "page":
            return {page.title for section in SECTIONS for page in section.pages}
        case _:
            return {tool.name for tool in TOOLS}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_is_listed(door: str) -> None:
    listed = named(door)
    assert sorted(set(listed) - existing(door)) == [], f"there is no such {door}"
    # The console also has lists of rows that belong to no feature.
    if door != "page":
        assert sorted(existing(door) - set(listed)) == [], f"add a row, or name the {door} in one"


def test_every_command_is_in_one_row() -> None:
    listed = named("command")
    assert sorted(name for name in set(listed) if listed.count(name) > 1) == []


def test_a_method_is_beside_its_operation() -> None:
    operations_of = methods()
    for row in rows():
        for method in names_in(row["client"]):
            assert operations_of[method] in names_in(row["operation"]), row


def test_a_missing_door_has_a_reason() -> None:
    text = PAGE.read_text(encoding="utf-8")
    reasons = set(re.findall(r"^\| (\w+) \| \w", text.partition("\n## ")[0], re.M))
    used = set()
    for row in rows():
        given = ""
        for cell in row.values():
            # An empty cell has the reason of the cell before it.
            given = cell or given
            assert given, row
            if given.startswith(_REASON):
                assert given.removeprefix(_REASON) in reasons, row
                used.add(given.removeprefix(_REASON))
    assert used == reasons
