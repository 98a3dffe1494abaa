"""Schemas of tools: reduced, shown in short, asked of models; arguments read and validated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arbor.errors import Invalid
from arbor.tools import schemas
from arbor.tools.schemas import (
    arguments_fault,
    asked_arguments,
    describe_arguments,
    read_arguments,
    reduced_schema,
)

PLACE = {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}
WRITTEN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"Place": PLACE},
    "properties": {
        "harbour": {"type": "string", "description": "Its\nname\x1b[2J", "pattern": "(a+)+$", "minLength": 2},
        "unit": {"enum": ["knots", "beaufort"], "type": "string"},
        "days": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}], "default": None},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"$ref": "#/$defs/Place"},
    },
    "required": ["harbour", "place"],
}


def test_a_schema_is_reduced_to_parts_that_have_bounds() -> None:
    assert reduced_schema(WRITTEN) == {
        "type": "object",
        "properties": {
            "harbour": {"type": "string", "description": "Its name [2J", "minLength": 2},
            "unit": {"enum": ["knots", "beaufort"], "type": "string"},
            "days": {"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": PLACE,
        },
        "required": ["harbour", "place"],
    }


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "no object"),
        ({"description": "x" * schemas.SCHEMA_LENGTH}, "at most 20,000"),
        ({"properties": {f"a{number}": {} for number in range(41)}}, "41 arguments"),
        ({"properties": {"a\x07": {}}, "required": ["a\x07"]}, "needs arguments that cannot be used"),
        (
            {"properties": {"a": {}}, "required": ["a", {"b": 1}]},
            "needs arguments that cannot be used: {'b': 1}",
        ),
    ],
)
def test_unusable_schemas_are_refused_with_a_reason(schema: object, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        reduced_schema(schema)


@pytest.mark.parametrize(
    "hostile",
    [
        {"$ref": "#"},
        {"$ref": "#/properties/hostile"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/$defs/a0"},
        {"enum": [float("inf")], "minimum": float("nan"), "maximum": True},
        {"type": ["string", {"x": 1}], "properties": [], "items": 7, "anyOf": "x", "required": 3},
        True,
    ],
)
def test_hostile_schemas_stay_small_and_validate_fast(hostile: object) -> None:
    # Each of these refers twice to the next one: evaluated as written, the last one would be visited 2^40 times.
    doubling = {f"a{number}": {"allOf": [{"$ref": f"#/$defs/a{number + 1}"}] * 2} for number in range(40)}
    schema = reduced_schema({"$defs": doubling, "properties": {"hostile": hostile}})

    json.dumps(schema, allow_nan=False)
    assert len(json.dumps(schema)) < 20_000
    assert arguments_fault({"hostile": "anything"}, schema) == ""


def test_references_do_not_multiply_a_schema_without_end() -> None:
    words = [f"{number:03}{'x' * 90}" for number in range(50)]
    argument = {"$ref": "#/$defs/Words"}
    multiplied = {
        "$defs": {"Words": {"type": "string", "enum": words}},
        "properties": {f"a{number}": argument for number in range(schemas.MAX_ARGUMENTS)},
    }
    assert len(json.dumps(multiplied)) < schemas.SCHEMA_LENGTH
    with pytest.raises(Invalid, match="more than 100,000 characters"):
        reduced_schema(multiplied)


def test_arguments_are_shown_one_line_each_needed_ones_first() -> None:
    assert describe_arguments(reduced_schema(WRITTEN)) == [
        "harbour (string): Its name [2J",
        "place (object, written as JSON)",
        "days (anything, optional, written as JSON)",
        "tags (array, optional)",
        'unit (string, one of ["knots", "beaufort"], optional)',
    ]


def test_models_are_asked_for_simple_closed_schemas() -> None:
    assert asked_arguments(reduced_schema(WRITTEN)) == {
        "type": "object",
        "properties": {
            "harbour": {"type": "string"},
            "unit": {"type": ["string", "null"], "enum": ["knots", "beaufort", None]},
            "days": {"type": ["string", "null"]},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}},
            "place": {"type": "string"},
        },
        "required": ["harbour", "unit", "days", "tags", "place"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("params", "arguments", "fault"),
    [
        (
            {"harbour": "Bergen", "place": '{"lat": 60}', "days": None, "unit": None},
            {"place": {"lat": 60}},
            "",
        ),
        ({"harbour": "Bergen", "place": {"lat": 60}, "days": "3"}, {"place": {"lat": 60}, "days": 3}, ""),
        ({"harbour": "B", "place": {"lat": 1}}, {}, "harbour: 'B' is too short"),
        ({"place": {"lat": 1}}, {}, "params: 'harbour' is a required property"),
        ({"harbour": "Bergen", "place": "{lat"}, {}, "place: '{lat' is not of type 'object'"),
        ({"harbour": "Bergen", "place": {"lat": 1}, "unit": "mph"}, {}, "unit: 'mph' is not one of"),
    ],
)
def test_arguments_are_read_and_validated(
    params: dict[str, Any], arguments: dict[str, Any], fault: str
) -> None:
    schema = reduced_schema(WRITTEN)
    read = read_arguments(params, schema)
    assert fault in arguments_fault(read, schema)
    if not fault:
        assert read == {"harbour": "Bergen"} | arguments
        assert arguments_fault(read, schema) == ""


@pytest.mark.parametrize(
    "text", ['{"lat": NaN}', '{"lat": 60, "name": "\\u0000"}', '{"lat": 60, "name": "\\ud800"}']
)
def test_json_that_cannot_be_stored_is_no_argument(text: str) -> None:
    schema = reduced_schema(WRITTEN)
    read = read_arguments({"harbour": "Bergen", "place": text}, schema)
    assert read["place"] == text
    assert "is not of type 'object'" in arguments_fault(read, schema)


@pytest.mark.parametrize(
    ("params", "message"),
    [({"text": "x" * 20_000}, "16,000 characters"), ({"deep": [[[[[[[[[[]]]]]]]]]]}, "nested more than 8")],
)
def test_large_arguments_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        read_arguments(params, reduced_schema({"type": "object"}))
