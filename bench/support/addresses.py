"""The addresses of all pages of the console and of all operations of the API that read, for one busy agent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Model
from django.urls import reverse

from apps.api.api import PATH, api
from apps.console.listing import ROWS_A_PAGE, PlatformAdmin
from apps.console.paging import ROWS_COUNTED
from apps.tenants.scope import tenant_transaction
from bench.support.population import BenchAgent

#: A frequent word of memories, and one that no row has.
_WORD, _NO_WORD = "the", "xylophone"
_LAST_PAGE = ROWS_COUNTED // ROWS_A_PAGE


@dataclass(frozen=True, kw_only=True)
class Address:
    """An address to open, by whom, and the group that its figures belong to."""

    group: str
    path: str
    caller: str = "operator"


def console_addresses(agent: BenchAgent) -> Iterator[Address]:
    """Yield the addresses of the console: as an operator of the agent's tenant, and as an operator of the installation."""
    yield Address(group="fleet", path=reverse("admin:index"))
    yield Address(group="installation", path=reverse("admin:index"), caller="root")
    yield Address(group="operations", path=reverse("admin:operations"))
    yield Address(group="installation", path=reverse("admin:operations"), caller="root")
    of_agent = {"agent": str(agent.agent_id)}
    yield from _named("recall", "admin:recall", {**of_agent, "q": "the storm"})
    yield from _named("graph", "admin:graph", of_agent)
    for by in ("model", "agent", "purpose", "day"):
        for days in ("1", "7", "30"):
            yield from _named("usage", "admin:model-usage", {"by": by, "days": days})
    yield from _named("usage", "admin:model-usage", {**of_agent, "days": "30"})
    yield from _named("signals", "admin:signals", {})
    yield from _named("signals", "admin:signals", of_agent)
    for name in ("heartbeat", "agent.paused", "memory", "chat"):
        yield from _named("signals", "admin:signals", {"name": name})
    yield from _named("other pages", "admin:inbox", {})
    yield from _named("other pages", "admin:template-edit", {})
    yield from _named("other pages", "admin:own-sessions", {})
    yield Address(group="agent", path=reverse("admin:agent-chat", args=[agent.agent_id]))
    with tenant_transaction(agent.tenant_id):
        for model, page in admin.site._registry.items():
            yield from _of_list(model, page, agent)


def _named(group: str, name: str, query: Mapping[str, str]) -> Iterator[Address]:
    yield Address(group=group, path=f"{reverse(name)}?{urlencode(query)}" if query else reverse(name))


def _of_list(model: type[Model], page: Any, agent: BenchAgent) -> Iterator[Address]:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    is_platform = isinstance(page, PlatformAdmin)
    caller = "root" if is_platform else "operator"
    path = reverse(f"{name}_changelist")

    def listed(group: str, **query: object) -> Address:
        where = f"{path}?{urlencode(query)}" if query else path
        return Address(group="installation" if is_platform else group, path=where, caller=caller)

    yield listed("list, first page")
    yield listed("list, last page", p=_LAST_PAGE)
    yield listed("list, searched", q=_NO_WORD)
    for entry in page.list_filter:
        field = entry[0] if isinstance(entry, tuple) else None
        if not isinstance(field, str):
            continue
        filtered: Any = model._meta.get_field(field)
        if filtered.is_relation:
            yield listed("list, one agent", **{f"{field}__id__exact": agent.agent_id})
            for word in (_WORD, _NO_WORD):
                yield listed("list, searched", **{f"{field}__id__exact": agent.agent_id, "q": word})
        else:
            for value, _ in filtered.flatchoices:
                yield listed("list, filtered", **{f"{field}__exact": value})
    if page.sortable_by != ():
        for number in range(1, len(page.list_display) + 1):
            yield listed("list, sorted", o=number)
            yield listed("list, sorted", o=-number)
    for kind in ("csv", "json"):
        yield Address(
            group="installation" if is_platform else "export, first bytes",
            path=reverse(f"{name}_export", args=[kind]),
            caller=caller,
        )
    if not is_platform and (row_id := _row_of(model, agent)):
        group = "agent" if model._meta.model_name == "agent" else "page of a row"
        yield Address(group=group, path=reverse(f"{name}_change", args=[row_id]))


def _row_of(model: type[Model], agent: BenchAgent) -> Any:
    """Return the id of the agent's latest row, or of any row of a model without agents."""
    if model._meta.label == "agents.Agent":
        return agent.agent_id
    rows = model._default_manager.order_by("-pk")
    names = {field.name for field in model._meta.get_fields()}
    if "agent" in names:
        rows = rows.filter(agent_id=agent.agent_id)
    return rows.values_list("pk", flat=True).first()


#: The labels of models by the parameters of the API's paths that name a row of them.
_MODEL_LABELS = {
    "belief_id": "selves.Belief",
    "cluster_id": "memories.Cluster",
    "episode_id": "memories.Episode",
    "goal_id": "goals.Goal",
    "heartbeat_id": "heartbeats.Heartbeat",
    "memory_id": "memories.Memory",
    "message_id": "contacts.OutboxMessage",
    "turn_id": "contacts.ChatMessage",
    "webhook_id": "contacts.SignalWebhook",
}
_LONGEST_PAGE = 200


def api_addresses(agent: BenchAgent) -> Iterator[Address]:
    """Yield the addresses of all operations of the API that read, with each choice of their filters."""
    models = {model._meta.label: model for model in admin.site._registry}
    with tenant_transaction(agent.tenant_id):
        rows = {name: _row_of(models[label], agent) for name, label in _MODEL_LABELS.items()}
    known: dict[str, Any] = {**rows, "agent_id": agent.agent_id, "name": "Scout"}
    for path, operations in api.get_openapi_schema()["paths"].items():
        if "get" not in operations or path.endswith("/stream"):
            continue
        yield from _of_operation(path, operations["get"].get("parameters", []), known)


def _of_operation(path: str, parameters: list[dict[str, Any]], known: Mapping[str, Any]) -> Iterator[Address]:
    schemas = {parameter["name"]: parameter["schema"] for parameter in parameters}
    given = {
        **known,
        "question": "connected",
        "kind": "memory",
        "id": known["memory_id"],
        "text": "the storm",
    }
    given |= {
        "from_kind": "memory",
        "from_id": known["memory_id"],
        "to_kind": "goal",
        "to_id": known["goal_id"],
    }
    names = re.findall(r"{(\w+)}", path)
    if any(given.get(name) is None for name in names):
        return
    query = {
        parameter["name"]: given[parameter["name"]]
        for parameter in parameters
        if parameter["in"] == "query" and parameter.get("required") and parameter["name"] in given
    }
    path = re.sub(r"{(\w+)}", lambda match: str(given[match[1]]), path)
    if "limit" not in schemas:
        yield _of_api("API, a row", path, query)
        return
    yield _of_api("API, list", path, query)
    if "cursor" in schemas:
        yield _of_api("API, long page", path, {**query, "limit": _LONGEST_PAGE})
    for name, schema in schemas.items():
        for value in _choices(schema):
            yield _of_api("API, list, filtered", path, {**query, name: value})
    if "agent_id" in schemas and "agent_id" not in names:
        yield _of_api("API, list, filtered", path, {**query, "agent_id": known["agent_id"]})
    if "name" in schemas and "name" not in names:
        yield _of_api(
            "API, list, filtered", path, {**query, "name": "memory" if "signals" in path else _NO_WORD}
        )


def _of_api(group: str, path: str, query: Mapping[str, Any]) -> Address:
    where = path if path.startswith(PATH) else f"{PATH}{path}"
    return Address(group=group, path=f"{where}?{urlencode(query)}" if query else where, caller="program")


def _choices(schema: Mapping[str, Any]) -> list[str]:
    """Return the values that a parameter may have, if they are listed."""
    found: list[str] = list(schema.get("enum", []))
    for part in [*schema.get("anyOf", []), *([schema["allOf"][0]] if "allOf" in schema else [])]:
        found += _choices(part)
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        found += _choices(api.get_openapi_schema()["components"]["schemas"][name])
    return found
