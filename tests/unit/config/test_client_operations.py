"""The Python client against the OpenAPI document: paths, parameters and results."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

from apps.api.api import PATH
from arbor_client.calls import Call
from arbor_client.streams import StreamCall
from scripts.client_calls import openapi, operation_of, requests_of_client


def test_every_method_of_the_client_has_its_operation() -> None:
    unknown = [
        f"{name}: {call.method} {call.path}"
        for name, call in requests_of_client().items()
        if operation_of(call.method, PATH + call.path) is None
    ]
    assert unknown == []


def test_every_post_of_the_client_has_an_idempotency_key() -> None:
    calls = {name: call for name, call in requests_of_client().items() if isinstance(call, Call)}
    without = [name for name, call in calls.items() if call.method == "POST" and not call.idempotency_key]
    assert without == []


@pytest.mark.parametrize("name", sorted(requests_of_client()))
def test_a_method_sends_and_reads_what_the_api_does(name: str) -> None:
    call = requests_of_client(whole=True)[name]
    operation = _operation_of(call)
    query = {part["name"] for part in operation.get("parameters", []) if part["in"] == "query"}
    # Lists set the paging parameters themselves, page after page.
    paging = {"cursor", "limit", "after"}
    assert sorted(call.query.keys() - paging) == sorted(query - paging)
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    sent = (call.body or ()) if isinstance(call, Call) else ()
    assert sorted(sent) == sorted(_properties(body) if body else ())
    if isinstance(call, Call) and call.kind is not type(None):
        (answer,) = [value for status, value in operation["responses"].items() if status.startswith("2")]
        if call.answers_file:
            ((kind, body),) = answer["content"].items()
            assert kind != "application/json"
            assert body["schema"] == {"type": "string", "format": "binary"}
        else:
            _assert_reads(call.kind, answer["content"]["application/json"]["schema"])


def _operation_of(call: Call[Any] | StreamCall) -> Any:
    method, _, path = (operation_of(call.method, PATH + call.path) or "").partition(" ")
    return openapi()["paths"][path][method.lower()]


def _properties(schema: Any) -> dict[str, Any]:
    schemas = openapi()["components"]["schemas"]
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
            parts = [hint for hint in (hints[name], *get_args(hints[name])) if is_dataclass(hint)]
            if parts and "$ref" in inner:
                _assert_reads(parts[0], inner)
