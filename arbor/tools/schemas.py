"""JSON schemas of tools' arguments: reduced to their safe parts, summarized for prompts, adapted to models' replies, and applied.

A schema is text of somebody else's server. It is stored without references, patterns and other parts whose evaluation has no
bound, and checks nothing that it does not contain: the server checks its arguments itself.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

from arbor.errors import Invalid
from arbor.models.json_text import parse_storable
from arbor.tools.texts import one_line

type Schema = dict[str, Any]

#: The most characters of a schema as JSON, and the most subschemas that are stored, and their depth.
SCHEMA_LENGTH = 20_000
MAX_NODES = 300
MAX_DEPTH = 6
#: The most characters of what is stored of a schema as JSON, where references have multiplied its parts.
REDUCED_LENGTH = 100_000
MAX_ARGUMENTS = 40
ARGUMENT_NAME_LENGTH = 60
#: The most values of an enumeration, and characters of one value.
MAX_VALUES = 50
VALUE_LENGTH = 100
#: The most characters of an argument's description.
DESCRIPTION_LENGTH = 200
#: The most depth and characters of JSON of the arguments of a call.
ARGUMENTS_DEPTH = 8
ARGUMENTS_LENGTH = 16_000

#: The most faults of a call's arguments that are shown, and characters of one of them.
_FAULTS_SHOWN = 3
_FAULT_LENGTH = 200

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_SCALARS = frozenset({"string", "number", "integer", "boolean"})
_LIMITS = (
    *("minLength", "maxLength", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
)
_ALTERNATIVES = ("anyOf", "oneOf", "allOf")


@dataclass(kw_only=True)
class _Reduction:
    """The progress of a reduction: the whole schema, for references, and the number of subschemas that may still be stored."""

    root: Mapping[str, Any]
    left: int = MAX_NODES

    def reduce(self, schema: object, depth: int) -> Schema:
        """Return the safe part of a subschema; one beyond the limits allows everything."""
        self.left -= 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self.left < 0:
            return {}
        if isinstance(schema.get("$ref"), str):
            return self.reduce(self._target(schema["$ref"]), depth + 1)
        reduced: Schema = {**_type(schema), **_values(schema), **_limits(schema)}
        if text := one_line(schema.get("description"), DESCRIPTION_LENGTH):
            reduced["description"] = text
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            reduced["properties"] = {
                name: self.reduce(properties[name], depth + 1) for name in properties if _is_name(name)
            }
            required = schema.get("required")
            names = required if isinstance(required, list) else []
            reduced["required"] = [name for name in reduced["properties"] if name in names]
        if schema.get("additionalProperties") is False:
            reduced["additionalProperties"] = False
        if isinstance(schema.get("items"), Mapping):
            reduced["items"] = self.reduce(schema["items"], depth + 1)
        for key in _ALTERNATIVES:
            if isinstance(schema.get(key), list) and schema[key]:
                reduced[key] = [self.reduce(part, depth + 1) for part in schema[key][:MAX_VALUES]]
        return reduced

    def _target(self, reference: str) -> object:
        target: object = self.root
        for part in reference.removeprefix("#/").split("/") if reference.startswith("#/") else ():
            target = target.get(part) if isinstance(target, Mapping) else None
        return target if target is not self.root else None


def reduced_schema(schema: object) -> Schema:
    """Return the safe part of a tool's schema. Raises Invalid with the reason why the tool cannot be used."""
    if not isinstance(schema, Mapping):
        raise Invalid("its input schema is no object")
    size = len(json.dumps(schema, ensure_ascii=False))
    if size > SCHEMA_LENGTH:
        raise Invalid(f"its input schema has {size:,} characters; at most {SCHEMA_LENGTH:,} are read")
    reduced = _Reduction(root=schema).reduce(schema, 0)
    properties = reduced.get("properties", {})
    if len(properties) > MAX_ARGUMENTS:
        raise Invalid(f"it has {len(properties)} arguments; at most {MAX_ARGUMENTS} can be used")
    given = schema.get("required")
    # The list may contain anything, also values that cannot be keys.
    missing = [name for name in given if name not in list(properties)] if isinstance(given, list) else []
    if missing:
        raise Invalid(
            f"it needs arguments that cannot be used: {one_line(', '.join(map(str, missing)), 200)}"
        )
    reduced["type"] = "object"
    reduced.setdefault("properties", {})
    reduced.setdefault("required", [])
    if len(json.dumps(reduced, ensure_ascii=False)) > REDUCED_LENGTH:
        raise Invalid(
            f"its input schema has more than {REDUCED_LENGTH:,} characters when its references are followed"
        )
    return reduced


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isprintable() and 1 <= len(name) <= ARGUMENT_NAME_LENGTH


def _type(schema: Mapping[str, Any]) -> Schema:
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        return {"type": kind}
    if isinstance(kind, list) and kind and all(isinstance(name, str) and name in _TYPES for name in kind):
        return {"type": list(dict.fromkeys(kind))}
    return {}


def _values(schema: Mapping[str, Any]) -> Schema:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_VALUES:
        return {}
    is_short = all(
        value is None or _is_number(value) or isinstance(value, bool) or _is_short(value) for value in values
    )
    return {"enum": values} if is_short else {}


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= VALUE_LENGTH and value.isprintable()


def _is_number(value: object) -> bool:
    # JSON of the database has neither infinity nor NaN.
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer or (isinstance(value, float) and math.isfinite(value))


def _limits(schema: Mapping[str, Any]) -> Schema:
    return {key: schema[key] for key in _LIMITS if _is_number(schema.get(key))}


def describe_arguments(schema: Schema) -> list[str]:
    """Describe each argument in one line, the required ones first: name, type, meaning."""
    required = schema.get("required", [])
    names = sorted(schema.get("properties", {}), key=lambda name: (name not in required, name))
    return [_argument_line(name, schema["properties"][name], is_required=name in required) for name in names]


def _argument_line(name: str, schema: Schema, *, is_required: bool) -> str:
    kind = schema.get("type", "anything")
    words = [kind if isinstance(kind, str) else " or ".join(kind)]
    if "enum" in schema:
        words.append(f"one of {one_line(json.dumps(schema['enum'], ensure_ascii=False), DESCRIPTION_LENGTH)}")
    if not is_required:
        words.append("optional")
    if _asked_as_text(schema):
        words.append("written as JSON")
    meaning = schema.get("description", "")
    return f"{name} ({', '.join(words)}){f': {meaning}' if meaning else ''}"


def asked_arguments(schema: Schema) -> Schema:
    """Return the schema that a model's reply is asked to have: closed, all keys required, null for missing values.

    Arguments with inner structure are asked for as texts of JSON, because providers accept simple schemas only.
    """
    required = schema.get("required", [])
    properties = {
        name: _asked(argument, is_required=name in required)
        for name, argument in schema.get("properties", {}).items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _asked(schema: Schema, *, is_required: bool) -> Schema:
    asked: Schema = {"type": "string"}
    if not _asked_as_text(schema):
        asked = {"type": _base_type(schema)}
        if asked["type"] == "array":
            asked["items"] = {"type": _base_type(schema["items"])}
        values = schema.get("enum")
        if values and asked["type"] == "string" and all(isinstance(value, str) for value in values):
            asked["enum"] = values
    if is_required:
        return asked
    return {
        **asked,
        "type": [asked["type"], "null"],
        **({"enum": [*asked["enum"], None]} if "enum" in asked else {}),
    }


def _asked_as_text(schema: Schema) -> bool:
    """Return whether an argument has inner structure: neither a scalar nor a list of scalars."""
    kind = _base_type(schema)
    if kind == "array":
        return _base_type(schema.get("items", {})) not in _SCALARS
    return kind not in _SCALARS


def _base_type(schema: Schema) -> str:
    """Return the only type of a schema besides null; empty for no type or several."""
    kind = schema.get("type", "")
    kinds = [kind] if isinstance(kind, str) else [name for name in kind if name != "null"]
    return kinds[0] if len(kinds) == 1 else ""


def read_arguments(params: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the arguments of a call from an action's parameters: without nulls for optional ones, JSON texts parsed.

    A text of JSON that cannot be stored, such as one with NaN or an escaped NUL, stays a text.
    Raises Invalid for arguments that are too large or nested too deeply.
    """
    required, known = schema.get("required", []), schema.get("properties", {})
    arguments = {
        name: _parsed(value, known.get(name, {}))
        for name, value in params.items()
        if value is not None or name in required
    }
    if len(json.dumps(arguments, ensure_ascii=False, default=str)) > ARGUMENTS_LENGTH:
        raise Invalid(f"the arguments have more than {ARGUMENTS_LENGTH:,} characters as JSON")
    if _depth(arguments) > ARGUMENTS_DEPTH:
        raise Invalid(f"the arguments are nested more than {ARGUMENTS_DEPTH} deep")
    return arguments


def _parsed(value: Any, schema: Schema) -> Any:
    kind = schema.get("type", [])
    may_be_text = "string" in ([kind] if isinstance(kind, str) else kind)
    if not isinstance(value, str) or may_be_text or not _asked_as_text(schema):
        return value
    try:
        return parse_storable(value)
    except ValueError:
        # The schema's check of the text tells the model what is wrong.
        return value


def _depth(value: Any, most: int = ARGUMENTS_DEPTH + 1) -> int:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if most == 0:
        return 1
    return 1 + max((_depth(item, most - 1) for item in inner), default=0)


def arguments_fault(arguments: dict[str, Any], schema: Schema) -> str:
    """Return the faults of arguments by a schema of `reduced_schema`; empty for valid arguments."""
    validator = _library().Draft202012Validator(schema)
    faults = islice(validator.iter_errors(arguments), _FAULTS_SHOWN)
    return "; ".join(
        one_line(f"{'.'.join(str(part) for part in fault.path) or 'params'}: {fault.message}", _FAULT_LENGTH)
        for fault in faults
    )


@lru_cache(maxsize=1)
def _library() -> Any:
    """Load jsonschema at the first call of a tool: most processes never call one."""
    return importlib.import_module("jsonschema")
