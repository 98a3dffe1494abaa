"""Isolation of tenants in all operations: none answers with rows of another tenant, and none fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from apps.api.api import PATH, api
from apps.tenants.models import Tenant
from tests.support.api import Caller, caller_of
from tests.support.console import World
from tests.support.console_rows import make_world

#: A text in every row of the other tenant.
SECRET = "zebra-in-the-attic"

#: Paths that need a valid template, an embedder, a heartbeat with a recorded situation, or the id of a memory to answer.
UNANSWERED = {
    "/agents/{agent_id}/graph/{question}",
    "/agents/{agent_id}/graph-path",
    "/agents/{agent_id}/self/diff",
    "/seeds/{seed_id}/diff/{other_id}",
    "/templates/{name}",
    "/skills/{name}",
    "/agents/{agent_id}/similar-memories",
    # The other tenant has no seal.
    "/audit/head",
    "/agents/{agent_id}/heartbeats/{heartbeat_id}/replay",
}


def read_operations() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the paths of the operations that read, with the operations."""
    for path, operations in api.get_openapi_schema()["paths"].items():
        # A stream does not end; test_signals reads it from a real server.
        if "get" in operations and not path.endswith("/stream"):
            yield path, operations["get"]


@pytest.fixture
def world(other_tenant: Tenant, settings: Any) -> World:
    """Fill the other tenant, and lift the limit of requests, which the addresses of all its rows would exceed."""
    settings.ARBOR_API_PER_MINUTE = 0
    return make_world(other_tenant, text=SECRET)


def _addresses(path: str, operation: dict[str, Any], world: World) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield addresses of a path with the id of one of the other tenant's rows of each kind."""
    ids = {type(row): str(row.pk) for row in world.rows}
    names = re.findall(r"{(\w+)}", path)
    query = {
        parameter["name"]: _value(parameter, world)
        for parameter in operation.get("parameters", [])
        if parameter["in"] == "query" and parameter.get("required")
    }
    if not names:
        yield path, query
        return
    fixed = path.replace("{agent_id}", str(world.agent.id)).replace("{question}", "connected")
    if "{" not in fixed:
        yield fixed, query
        return
    for row_id in ids.values():
        yield re.sub(r"{\w+}", row_id, fixed), query


def _value(parameter: dict[str, Any], world: World) -> str:
    name = parameter["name"]
    if name.endswith("kind"):
        return "memory"
    return str(world.agent.id) if name.endswith("id") else SECRET


def test_rows_are_answered_to_their_own_tenant_only(
    tenant: Tenant, world: World, other_tenant: Tenant
) -> None:
    """Call every address as the tenant of the rows; then, as another one, those that gave rows, and the paths that gave none."""
    insider, outsider = caller_of(other_tenant), caller_of(tenant)
    unanswered = set()
    for path, operation in read_operations():
        addresses = list(_addresses(path, operation, world))
        answered = [address for address in addresses if _is_answered(insider, *address)]
        if not answered:
            unanswered.add(path.removeprefix(PATH))
        for address, query in answered or addresses:
            response = outsider.get(address.removeprefix(PATH), **query)
            body = response.getvalue()
            missing = "{" in path or path.endswith("/audit/head")
            assert response.status_code == (404 if missing else 200), (address, body)
            assert SECRET not in body.decode(), address
    assert unanswered == UNANSWERED


def _is_answered(insider: Caller, address: str, query: dict[str, str]) -> bool:
    """Return whether the tenant of the rows gets an answer; fail unless the operation answers or refuses."""
    response = insider.get(address.removeprefix(PATH), **query)
    response.close()
    # 503: the model that the factory names has no embedder.
    assert response.status_code in (200, 404, 409, 422, 503), (address, response.content)
    return bool(response.status_code == 200)


def test_a_row_for_a_foreign_agent_is_refused(tenant: Tenant, world: World) -> None:
    caller = caller_of(tenant)
    goal = caller.post(f"/agents/{world.agent.id}/goals", {"title": "Count the stars"})
    body = {"name": "desk", "kind": "inbox", "audience": "user", "agent_id": str(world.agent.id)}
    channel = caller.post("/channels", body)
    assert {goal.status_code, channel.status_code} == {404}
    assert goal.json()["detail"] == f"there is no agent {world.agent.id} in this tenant"
    assert channel.json()["detail"] == "there is no such agent in this tenant"
