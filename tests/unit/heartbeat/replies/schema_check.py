"""A checker for the small part of JSON Schema that the schema of replies uses."""

from __future__ import annotations

from typing import Any

from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.replies.reply_schema import reply_schema

#: The schema with all keys and all actions.
REPLY_SCHEMA = reply_schema(ACTIONS)

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
KNOWN = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "maxItems",
    "enum",
    "anyOf",
    "description",
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Return whether the value matches the schema; fail on unknown keywords."""
    assert set(schema) <= KNOWN, f"the checker does not know {set(schema) - KNOWN}"
    if "anyOf" in schema:
        return any(fits(value, option) for option in schema["anyOf"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, bool) or not any(isinstance(value, _TYPES[name]) for name in types):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, list):
        return len(value) <= schema.get("maxItems", len(value)) and all(
            fits(item, schema["items"]) for item in value
        )
    if isinstance(value, dict):
        properties = schema["properties"]
        return (
            set(value) <= set(properties)
            and set(schema["required"]) <= set(value)
            and all(fits(item, properties[key]) for key, item in value.items())
        )
    return True
