"""The Python client against a real server, and its operations against those of the API."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest

import arbor_client
from apps.agents.services.templates import seed_builtin_templates
from apps.api.api import PATH, api
from apps.tenants.models import Role, Tenant
from arbor_client import Arbor, AsyncArbor
from arbor_client.calls import Call, PagedCall
from arbor_client.groups import Group, listing, operation, streaming
from arbor_client.streams import StreamCall
from tests.integration.api.test_server import server
from tests.support.api import caller_of

__all__ = ["server"]

#: Operations of the API that the client has no method for, one a line.
WITHOUT_METHOD = Path(__file__).with_name("operations_without_client_method.txt")
_ID = UUID("01890000-0000-7000-8000-000000000001")


def requests_of_client(*, whole: bool = False) -> Iterator[tuple[str, Call[Any] | StreamCall]]:
    """Yield the name and request of each operation of the client; `whole`: with a value for each parameter."""
    with Arbor("http://arbor", "x") as client:
        for group in vars(client).values():
            if isinstance(group, Group):
                for name, member in vars(type(group)).items():
                    if isinstance(member, operation | listing | streaming):
                        built = _bound(member._build, group, whole=whole)
                        call = built.first if isinstance(built, PagedCall) else built
                        assert isinstance(call, Call | StreamCall)
                        yield f"{type(group).__name__}.{name}", call


def _bound(build: Any, group: Any, *, whole: bool) -> Any:
    """Call a method with a value for each required parameter, or for each one."""
    given = inspect.signature(build).bind_partial(group)
    for parameter in inspect.signature(build).parameters.values():
        wanted = whole or parameter.default is parameter.empty
        if wanted and parameter.name not in given.arguments:
            given.arguments[parameter.name] = _value(parameter.name, str(parameter.annotation))
    return build(*given.args, **given.kwargs)


def _value(name: str, annotation: str) -> Any:
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
def operations_of_api() -> dict[str, re.Pattern[str]]:
    """Return the operations of the API, as `GET /path`, with the pattern of their paths."""
    paths = api.get_openapi_schema()["paths"]
    return {
        f"{method.upper()} {path}": re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))
        for path, operations in paths.items()
        for method in operations
    }


def _operation_of(method: str, path: str) -> str | None:
    """Return the API's operation that answers a request; a path without variables takes precedence."""
    found = [
        name
        for name, pattern in operations_of_api().items()
        if name.split()[0] == method and pattern.fullmatch(path)
    ]
    return min(found, key=lambda name: name.count("{"), default=None)


def test_every_method_of_the_client_has_its_operation() -> None:
    strangers = [
        f"{name}: {call.method} {call.path}"
        for name, call in requests_of_client()
        if _operation_of(call.method, PATH + call.path) is None
    ]
    assert strangers == []


def test_operations_without_a_method_are_listed() -> None:
    served = {_operation_of(call.method, PATH + call.path) for _, call in requests_of_client()}
    listed = {line.partition("#")[0].strip() for line in WITHOUT_METHOD.read_text("utf-8").splitlines()}
    assert sorted(operations_of_api().keys() - served) == sorted(listed - {""})


@pytest.mark.parametrize("name", sorted(name for name, _ in requests_of_client()))
def test_a_method_sends_and_reads_what_the_api_does(name: str) -> None:
    call = dict(requests_of_client(whole=True))[name]
    described = _described(call)
    query = {part["name"] for part in described.get("parameters", []) if part["in"] == "query"}
    # Lists set them themselves, page after page.
    paging = {"cursor", "limit", "after"}
    assert sorted(call.query.keys() - paging) == sorted(query - paging)
    body = described.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    assert sorted(call.body or ()) == sorted(_properties(body) if body else ())
    if isinstance(call, Call) and call.kind is not type(None):
        (answer,) = [value for status, value in described["responses"].items() if status.startswith("2")]
        _assert_reads(call.kind, answer["content"]["application/json"]["schema"])


def _described(call: Call[Any] | StreamCall) -> Any:
    method, _, path = (_operation_of(call.method, PATH + call.path) or "").partition(" ")
    return api.get_openapi_schema()["paths"][path][method.lower()]


def _properties(schema: Any) -> dict[str, Any]:
    schemas = api.get_openapi_schema()["components"]["schemas"]
    properties: dict[str, Any] = schemas[schema["$ref"].rpartition("/")[2]]["properties"]
    return properties


def _assert_reads(kind: Any, schema: Any) -> None:
    """Compare the fields of a dataclass with an object of the API; of a list, with its rows."""
    if schema.get("type") == "array":
        schema = schema["items"]
    properties = _properties(schema)
    names = [field.name for field in fields(kind)]
    lists = {"items", "results"} & properties.keys()
    if lists and not lists & set(names):
        _assert_reads(kind, properties[lists.pop()])
        return
    assert sorted(names) == sorted(properties), kind
    hints = get_type_hints(kind)
    for name, value in properties.items():
        for inner in (value, value.get("items", {}), *value.get("anyOf", ())):
            part = [one for one in (hints[name], *get_args(hints[name])) if is_dataclass(one)]
            if part and "$ref" in inner:
                _assert_reads(part[0], inner)


def test_a_program_uses_a_real_server(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    with Arbor(server, caller_of(tenant, Role.OWNER).token) as arbor:
        assert arbor.tenant.token().role == "owner"
        vega = arbor.agents.create("Vega", template="Scout", start=True)
        arbor.agents.create("Deneb", template="Scout")
        assert [agent.name for agent in arbor.agents.list()] == ["Deneb", "Vega"]
        shown = arbor.agents.publish(vega.id, description="Knows the tides.")
        assert (shown.published, shown.public_description) == (True, "Knows the tides.")
        assert arbor.agents.publish(vega.id).public_description == "Knows the tides."
        assert not arbor.agents.unpublish(vega.id).published
        assert arbor.agents.pause(vega.id).status == "paused"
        with pytest.raises(arbor_client.Conflict, match="paused"):
            arbor.agents.pause(vega.id)
        with pytest.raises(arbor_client.Missing):
            arbor.agents.get(_ID)
        with pytest.raises(arbor_client.Unprocessable) as caught:
            arbor.agents.create("x" * 200, template="Scout")
        assert any("name" in field for field in caught.value.fields)
        assert arbor.agents.destroy(vega.id, confirm="Vega").id == vega.id
    with Arbor(server, "arbor_wrong") as stranger, pytest.raises(arbor_client.TokenInvalid):
        stranger.tenant.get()


def test_a_program_works_with_an_agent(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    with Arbor(server, caller_of(tenant, Role.OWNER).token) as arbor:
        vega = arbor.agents.create("Vega", template="Scout", start=True).id
        stored = arbor.memories.remember(vega, "The ferry leaves at noon.", importance=0.8)
        assert arbor.memories.recall(vega, "When does the ferry leave?", limit=1).results[0].id == stored.id
        assert stored.id in [memory.id for memory in arbor.memories.list(vega, min_importance=0.7)]
        assert arbor.memories.get(vega, stored.id).recalled == 0
        assert arbor.memories.archive(vega, [stored.id], reason="A test.").changed == 1
        assert arbor.memories.restore(vega, [stored.id], reason="A test.").changed == 1
        goal = arbor.goals.add(vega, "Chart the reef", state="active")
        changed = arbor.goals.change(vega, goal.id, note="Half.", fraction=0.5)
        assert (changed.fraction, arbor.goals.get(vega, goal.id).fraction) == (0.5, 0.5)
        assert goal.id in [listed.id for listed in arbor.goals.list(vega)]
        proposal = arbor.proposals.add(vega, "Ferries leave at noon.")
        assert arbor.proposals.reject(vega, proposal.id, reason="No.").status == "rejected"
        assert list(arbor.proposals.list(vega, status="pending")) == []
        assert arbor.heartbeats.notify(vega, "It rains.").kind == "environment"
        assert list(arbor.heartbeats.list(vega)) == []
        # No worker answers here: the client stops waiting.
        said = arbor.conversations.say(vega, "Hello.", wait_s=0.5)
        assert said.answer is None
        assert arbor.conversations.turn(vega, said.turn.id).turn == said.turn
        assert [turn.content for turn in arbor.conversations.turns(vega)] == ["Hello."]


def test_an_asynchronous_program_uses_a_real_server(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    token = caller_of(tenant, Role.OWNER).token

    async def use() -> list[str]:
        async with AsyncArbor(server, token) as arbor:
            names = ("Altair", "Deneb", "Vega")
            await asyncio.gather(*(arbor.agents.create(name, template="Scout") for name in names))
            return [agent.name async for agent in arbor.agents.list()]

    assert asyncio.run(use()) == ["Altair", "Deneb", "Vega"]
