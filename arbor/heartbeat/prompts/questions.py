"""Compact stored form of model requests: schemas by their inputs, sections by their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from arbor.heartbeat.replies.reply_schema import CACHED_SCHEMAS, reply_schema
from arbor.models.ports import ModelRequest

#: The key of the inputs of the schema: {"allowed": [actions], "keys": [of the reply], "tools": {action: schema}}.
_SCHEMA_OF = "schema_of"


def request_json(
    request: ModelRequest,
    *,
    allowed: Sequence[str],
    keys: Sequence[str],
    tools: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a request as JSON, with the inputs of its schema instead of the schema; `tools` are schemas by action."""
    inputs = {"allowed": list(allowed), "keys": list(keys)} | ({"tools": dict(tools)} if tools else {})
    return request.to_json() | {"schema": None, _SCHEMA_OF: inputs}


def request_of(stored: Mapping[str, Any]) -> ModelRequest:
    request = dict(stored)
    schema_inputs = request.pop(_SCHEMA_OF, None)
    if schema_inputs is not None:
        allowed, keys = tuple(schema_inputs["allowed"]), tuple(schema_inputs["keys"])
        tools = schema_inputs.get("tools")
        request["schema"] = reply_schema(allowed, keys, tools) if tools else _schema(allowed, keys)
    return ModelRequest.from_json(request)


# Adapters recognize a schema that they have converted by its identity.
@lru_cache(maxsize=CACHED_SCHEMAS)
def _schema(allowed: tuple[str, ...], keys: tuple[str, ...]) -> dict[str, Any]:
    return reply_schema(allowed, keys)


def stored_sections(
    sections: Sequence[Mapping[str, Any]], request: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return sections, {name, text, tokens} each, with offsets instead of texts."""
    if not sections:
        return []
    parts = [("system", str(request["system"])), ("user", str(request["messages"][0]["content"]))]
    stored: list[dict[str, Any]] = []
    number, start = 0, 0
    for section in sections:
        text = section["text"]
        # Most sections begin after an empty line, without a search.
        prompt, following = parts[number][1], start + 2
        offset = following if prompt.startswith(text, following) else prompt.find(text, start)
        if offset < 0 and number == 0:
            number, start = 1, 0
            offset = parts[1][1].find(text)
        entry = dict(section)
        if offset >= 0:
            start = offset + len(text)
            del entry["text"]
            entry |= {"part": parts[number][0], "from": offset, "to": start}
        stored.append(entry)
    return stored


def sections_of(sections: Any, request: Any) -> list[dict[str, Any]]:
    """Return the sections of a call with their texts, {name, text, tokens} each."""
    if not isinstance(sections, list) or not isinstance(request, Mapping):
        return []
    messages = request.get("messages") or [{}]
    parts = {"system": str(request.get("system", "")), "user": str(messages[0].get("content", ""))}
    restored = []
    for section in sections:
        if isinstance(section, Mapping):
            entry = dict(section)
            if "part" in entry:
                entry["text"] = parts.get(entry.pop("part"), "")[entry.pop("from") : entry.pop("to")]
            restored.append(entry)
    return restored
