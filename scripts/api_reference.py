"""Write the reference of the REST API: each operation with the token that it needs and the method of the Python client.

Usage: PYTHONPATH=clients/python python -m scripts.api_reference [--check]
Exit codes: 0 done; 1 with `--check`: docs/reference/api.md is not up to date; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID

import django

from arbor_client import Arbor
from arbor_client.calls import Call, PagedCall
from arbor_client.groups import Group, listing, operation, streaming
from arbor_client.streams import StreamCall

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference" / "api.md"
COMMAND = "make reference"
_ID = UUID("01890000-0000-7000-8000-000000000001")
_VERBS = ("start", "pause", "resume", "stop", "sleep", "wake")
_INTRODUCTION = """\
# REST API

Written by `make reference` from the operations themselves; `make check` compares. Bodies, parameters and responses are in the OpenAPI document
([openapi.json](openapi.json), `/api/v1/openapi.json`), which `/api/v1/docs` shows in a browser. [Use the API](../how-to/use-the-api.md) has examples.

- **Paths** begin with `/api/v1`.
- **Token**: the least role that its token needs. A token of one agent reaches the operations below `/agents/{agent_id}` of that agent, and those marked with a star.
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
    for name, method, path in requests_of_client():
        methods[operation_of(method, routes.PATH + path)].append(name)
    for path, operations in routes.api.get_openapi_schema()["paths"].items():
        for method, described in operations.items():
            name = f"{method.upper()} {path}"
            yield OperationLine(
                tag=described["tags"][0],
                name=name.replace(routes.PATH, "", 1),
                purpose=_first_sentence(described["description"]),
                token=tokens[described["operationId"]],
                methods=methods[name],
            )


def requests_of_client() -> Iterator[tuple[str, str, str]]:
    """Yield the name, method and path of each operation of the client."""
    with Arbor("http://arbor", "x") as client:
        for attribute, group in vars(client).items():
            if isinstance(group, Group):
                for name, member in vars(type(group)).items():
                    if isinstance(member, operation | listing | streaming):
                        for built in _bound(member._build, group):
                            call = built.first if isinstance(built, PagedCall) else built
                            assert isinstance(call, Call | StreamCall)
                            yield f"{attribute}.{name}", call.method, call.path


@cache
def operations_of_api() -> dict[str, re.Pattern[str]]:
    """Return the operations of the API, as `GET /path`, with the pattern of their paths."""
    paths = import_module("apps.api.api").api.get_openapi_schema()["paths"]
    return {
        f"{method.upper()} {path}": re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))
        for path, operations in paths.items()
        for method in operations
    }


def operation_of(method: str, path: str) -> str | None:
    """Return the API's operation that answers a request; a path without variables takes precedence."""
    found = [
        name
        for name, pattern in operations_of_api().items()
        if name.split()[0] == method and pattern.fullmatch(path)
    ]
    return min(found, key=lambda name: name.count("{"), default=None)


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


def _bound(build: Any, group: Any) -> Iterator[Any]:
    """Call a method with a value for each required parameter: an id or a text; with a verb, once for each of an agent's."""
    required = [
        parameter.name
        for parameter in list(inspect.signature(build).parameters.values())[1:]
        if parameter.default is parameter.empty
    ]
    for verb in _VERBS if "verb" in required else ("",):
        named = {name: verb if name == "verb" else _value(name) for name in required}
        yield build(group, **named)


def _value(name: str) -> Any:
    if name.endswith("_id"):
        return _ID
    return [_ID] if name == "ids" else "x"


def _first_sentence(text: str) -> str:
    """Return the first sentence of a description, fit for a cell of a table."""
    line = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", line)[0].replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
