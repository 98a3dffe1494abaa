"""The requests that the Python client can send, and the operations of the API that answer them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Any
from uuid import UUID

import arbor_client
from arbor_client import Arbor
from arbor_client.calls import Call, PagedCall
from arbor_client.groups import Group, listing, operation, streaming
from arbor_client.streams import StreamCall

_ID = UUID("01890000-0000-7000-8000-000000000001")


type Request = Call[Any] | StreamCall


@cache
def requests_of_client(*, whole: bool = False) -> dict[str, Request]:
    """Return the request of each operation of the client by its name; `whole`: with a value for each parameter."""
    return dict(_requests(whole=whole))


def _requests(*, whole: bool) -> Iterator[tuple[str, Request]]:
    with Arbor("http://arbor", "x") as client:
        for group_name, group in vars(client).items():
            if isinstance(group, Group):
                for name, member in vars(type(group)).items():
                    if isinstance(member, operation | listing | streaming):
                        built = _bound(member._build, group, whole=whole)
                        call = built.first if isinstance(built, PagedCall) else built
                        assert isinstance(call, Call | StreamCall)
                        yield f"{group_name}.{name}", call


def _bound(build: Any, group: Any, *, whole: bool) -> Any:
    """Call a method with a value for each required parameter, or for each one."""
    given = inspect.signature(build).bind_partial(group)
    for parameter in inspect.signature(build).parameters.values():
        wanted = whole or parameter.default is parameter.empty
        if wanted and parameter.name not in given.arguments:
            given.arguments[parameter.name] = _value(str(parameter.annotation))
    return build(*given.args, **given.kwargs)


def _value(annotation: str) -> Any:
    """Return a value for a parameter, by the beginning of its type."""
    values: dict[str, Any] = {
        "Id": _ID,
        "Iterable[Id]": [_ID],
        "Iterable[NewStep]": [arbor_client.NewStep(action="x", description="x")],
        "Node": arbor_client.Node(kind="goal", id=_ID),
        "Mapping": {"x": ["x"]},
        "dict": {"x": "x"},
        "float": 0.5,
        "int": 1,
        "bool": True,
        "datetime": datetime.now(UTC),
        "time": datetime.now(UTC).time(),
    }
    return next(
        (
            value
            for kind, value in values.items()
            if re.match(rf"{re.escape(kind)}\b|{re.escape(kind)}$", annotation)
        ),
        "x",
    )


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI document, which takes a second to create. Django must be set up."""
    document: dict[str, Any] = import_module("apps.api.api").api.get_openapi_schema()
    return document


@cache
def operations_of_api() -> dict[str, re.Pattern[str]]:
    """Return the operations of the API, as `GET /path`, with the pattern of their paths."""
    paths = openapi()["paths"]
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
