"""Read JSON into dataclasses, and write values as JSON. Fields that this version does not know are ignored."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from arbor_client.errors import UnreadableAnswer


def decode(kind: Any, value: Any) -> Any:
    """Return a value of JSON as this type; text, whole numbers, booleans and null are returned unchecked.

    Raises UnreadableAnswer for a value that cannot be converted.
    """
    try:
        return _read(kind, value)
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise UnreadableAnswer(
            f"the server's answer is no {getattr(kind, '__name__', kind)}: {error}"
        ) from error


def encode(value: Any) -> Any:
    """Return a Python value as a value of JSON."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case UUID() | Decimal():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {str(name): encode(member) for name, member in value.items()}
        case _ if is_dataclass(value):
            return {member.name: encode(getattr(value, member.name)) for member in fields(value)}
        case Iterable():
            return [encode(member) for member in value]
    raise TypeError(f"{value!r} cannot be sent: it is no value of JSON")


def _read(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if kind is Any or value is None:
        return value
    if origin in (Union, types.UnionType):
        return _read(next(member for member in get_args(kind) if member is not type(None)), value)
    if origin is list:
        (member,) = get_args(kind)
        return [_read(member, item) for item in value]
    if origin is dict:
        _, member = get_args(kind)
        return {str(name): _read(member, item) for name, item in value.items()}
    if kind in (datetime, date, time):
        return kind.fromisoformat(value)
    if kind in (UUID, Decimal, float):
        return kind(value)
    return _read_dataclass(kind, value) if is_dataclass(kind) else value


def _read_dataclass(kind: Any, value: Any) -> Any:
    hints = _hints(kind)
    given = {}
    for member in fields(kind):
        if member.name in value:
            given[member.name] = _read(hints[member.name], value[member.name])
        elif member.default is MISSING and member.default_factory is MISSING:
            raise ValueError(f"{member.name} is missing")
    return kind(**given)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
