"""The reference of the Python API against the runtime's port and the client."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import arbor_client
from arbor.runtime import AgentRuntime
from arbor_client import Arbor
from arbor_client.groups import Group, listing, operation, streaming

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "python-api.md"
_CALL = re.compile(r"`([a-z_.]+\([a-z_, ]*\))`")


def documented_calls(section: str) -> list[str]:
    """Return the calls in the first column of a section's table."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return [call for cell in cells for call in _CALL.findall(cell)]


def written(name: str, function: Callable[..., Any]) -> str:
    """Return a method with the names of its parameters."""
    return f"{name}({', '.join(list(inspect.signature(function).parameters)[1:])})"


def calls_of_client() -> Iterator[str]:
    with Arbor("http://arbor", "x") as client:
        for attribute, group in vars(client).items():
            if isinstance(group, Group):
                for name, member in vars(type(group)).items():
                    if isinstance(member, operation | listing | streaming):
                        yield written(f"{attribute}.{name}", member._build)


def test_the_runtime_is_documented() -> None:
    methods = {name: member for name, member in vars(AgentRuntime).items() if not name.startswith("_")}
    calls = [written(name, member) for name, member in methods.items() if inspect.isfunction(member)]
    assert len(calls) > 15
    assert sorted(documented_calls("The runtime")) == sorted(calls)


def test_the_client_is_documented() -> None:
    assert sorted(documented_calls("The client")) == sorted(calls_of_client())


def test_the_errors_of_the_client_are_documented() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("\n## The client\n")[2]
    kinds = [
        name
        for name, member in vars(arbor_client).items()
        if inspect.isclass(member) and issubclass(member, arbor_client.ArborClientError)
    ]
    assert [kind for kind in kinds if f"`{kind}`" not in text and f"`{kind}`s" not in text] == []
