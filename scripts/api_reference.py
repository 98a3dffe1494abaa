"""Write the reference of the REST API: each operation with the token that it needs and the method of the Python client.

Usage: PYTHONPATH=clients/python python -m scripts.api_reference [--check]
Exit codes: 0 done; 1 with `--check`: docs/reference/api.md is not up to date; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import django

from scripts.client_calls import openapi, operation_of, requests_of_client

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference" / "api.md"
COMMAND = "make reference"
_INTRODUCTION = """\
# REST API

Written by `make reference` from the operations themselves; `make check` compares. Bodies, parameters and responses are in the OpenAPI document
([openapi.json](openapi.json), `/api/v1/openapi.json`), which `/api/v1/docs` shows in a browser. [Use the API](../how-to/use-the-api.md) has examples.

- **Paths** begin with `/api/v1`.
- **Token**: the least role that its token needs. A token of one agent reaches the operations below `/agents/{agent_id}` of that agent, except those that reach other agents (`fork`, `merge`, `delegate`), and those marked with a star.
- **Client**: the method of `arbor-client` ([Python API](python-api.md)) on an `Arbor` or `AsyncArbor`. Where there is none, a program sends the request itself.

Beside it the same process serves `/healthz` and `/readyz` (without a token), [OpenAI's protocol](../how-to/connect-chat-clients.md) below `/v1` and
[MCP](../how-to/use-as-memory.md) at `/mcp`.
"""
_HEAD = "| operation | what it does | token | client |\n|---|---|---|---|"


@dataclass(frozen=True, kw_only=True)
class OperationLine:
    """One operation of the API, as the reference shows it."""

    tag: str
    #: `GET /agents`.
    name: str
    purpose: str
    token: str
    #: Methods of the client: `agents.list`.
    methods: Sequence[str]

    def row(self) -> str:
        """Return the operation as a row of a Markdown table."""
        methods = ", ".join(f"`{method}`" for method in self.methods)
        return f"| `{self.name}` | {self.purpose} | {self.token} | {methods} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the reference, or compare it with the committed one; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.api_reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="Compare it with docs/reference/api.md instead.")
    is_check = parser.parse_args(arguments).check
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    text = reference()
    if not is_check:
        sys.stdout.write(text)
        return 0
    if REFERENCE.exists() and REFERENCE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"docs/reference/api.md is not up to date: {COMMAND}\n")
    return 1


def reference() -> str:
    """Return the reference as it is committed. Django must be set up."""
    by_tag: dict[str, list[OperationLine]] = defaultdict(list)
    for line in operation_lines():
        by_tag[line.tag].append(line)
    sections = [
        f"## {tag.capitalize()}\n\n{_HEAD}\n" + "\n".join(line.row() for line in lines) + "\n"
        for tag, lines in by_tag.items()
    ]
    return "\n".join([_INTRODUCTION, *sections])


def operation_lines() -> Iterator[OperationLine]:
    """Yield the operations of the API, in the order of its document."""
    routes = import_module("apps.api.api")
    tokens = dict(_tokens_needed(routes.api))
    methods: dict[str | None, list[str]] = defaultdict(list)
    for name, call in requests_of_client().items():
        methods[operation_of(call.method, routes.PATH + call.path)].append(name)
    for path, operations in openapi()["paths"].items():
        for method, described in operations.items():
            name = f"{method.upper()} {path}"
            yield OperationLine(
                tag=described["tags"][0],
                name=name.replace(routes.PATH, "", 1),
                purpose=_first_sentence(described["description"]),
                token=tokens[described["operationId"]],
                methods=methods[name],
            )


def _tokens_needed(api: Any) -> Iterator[tuple[str, str]]:
    """Yield the id of each operation, and the token that it needs."""
    for router in api._get_bound_routers():
        for path, view in router.path_operations.items():
            for served in view.operations:
                bearer = served.auth_callbacks[0]
                is_narrow = not bearer._tenant_wide and "{agent_id}" not in path
                role = bearer.role_for(served.methods[0])
                name = served.operation_id or api.get_openapi_operation_id(served)
                yield name, f"{role}*" if is_narrow else str(role)


def _first_sentence(text: str) -> str:
    """Return the first sentence of a description, escaped for a cell of a table."""
    line = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", line)[0].replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
