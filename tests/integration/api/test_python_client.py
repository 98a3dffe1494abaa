"""The Python client against a real server, and its operations against those of the API."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
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


def requests_of_client() -> Iterator[tuple[str, str, str]]:
    """Yield the name, method and path of each operation of the client."""
    with Arbor("http://arbor", "x") as client:
        for group in vars(client).values():
            if isinstance(group, Group):
                for name, member in vars(type(group)).items():
                    if isinstance(member, operation | listing | streaming):
                        built = _bound(member._build, group)
                        call = built.first if isinstance(built, PagedCall) else built
                        assert isinstance(call, Call | StreamCall)
                        yield f"{type(group).__name__}.{name}", call.method, PATH + call.path


def _bound(build: Any, group: Any) -> Any:
    """Call a method with a value for each required parameter: an id, a verb or a text."""
    given = inspect.signature(build).bind_partial(group)
    for parameter in inspect.signature(build).parameters.values():
        if parameter.default is parameter.empty and parameter.name not in given.arguments:
            given.arguments[parameter.name] = _value(parameter.name)
    return build(*given.args, **given.kwargs)


def _value(name: str) -> Any:
    if name.endswith("_id"):
        return _ID
    return {"ids": [_ID], "verb": "start"}.get(name, "x")


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
        f"{name}: {method} {path}"
        for name, method, path in requests_of_client()
        if _operation_of(method, path) is None
    ]
    assert strangers == []


def test_operations_without_a_method_are_listed() -> None:
    served = {_operation_of(method, path) for _, method, path in requests_of_client()}
    listed = set(WITHOUT_METHOD.read_text(encoding="utf-8").split("\n")) - {""}
    assert sorted(operations_of_api().keys() - served) == sorted(listed)


def test_a_program_uses_a_real_server(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    with Arbor(server, caller_of(tenant, Role.OWNER).token) as arbor:
        assert arbor.tenant.token().role == "owner"
        vega = arbor.agents.create("Vega", template="Scout", start=True)
        arbor.agents.create("Deneb", template="Scout")
        assert [agent.name for agent in arbor.agents.list()] == ["Deneb", "Vega"]
        assert arbor.agents.change_status(vega.id, "pause").status == "paused"
        shown = arbor.agents.publish(vega.id, description="Knows the tides.")
        assert (shown.published, shown.public_description) == (True, "Knows the tides.")
        assert arbor.agents.publish(vega.id).public_description == "Knows the tides."
        assert not arbor.agents.unpublish(vega.id).published
        with pytest.raises(arbor_client.Conflict, match="paused"):
            arbor.agents.change_status(vega.id, "pause")
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
        assert arbor.proposals.decide(vega, proposal.id, "reject", reason="No.").status == "rejected"
        assert list(arbor.proposals.list(vega, status="pending")) == []
        assert arbor.heartbeats.notify(vega, "It rains.").kind == "environment"
        assert list(arbor.heartbeats.list(vega)) == []
        # No worker answers here: the client stops waiting.
        said = arbor.conversations.say(vega, "Hello.", wait_s=0.5)
        assert said.answer is None
        assert arbor.conversations.turn(vega, said.turn.id).turn == said.turn
        assert [turn.content for turn in arbor.conversations.turns(vega).items] == ["Hello."]


def test_an_asynchronous_program_uses_a_real_server(server: str, tenant: Tenant) -> None:
    seed_builtin_templates()
    token = caller_of(tenant, Role.OWNER).token

    async def use() -> list[str]:
        async with AsyncArbor(server, token) as arbor:
            names = ("Altair", "Deneb", "Vega")
            await asyncio.gather(*(arbor.agents.create(name, template="Scout") for name in names))
            return [agent.name async for agent in arbor.agents.list()]

    assert asyncio.run(use()) == ["Altair", "Deneb", "Vega"]
