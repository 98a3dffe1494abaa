"""Write the values of a request as JSON knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID


def encode(value: Any) -> Any:
    """Return a value of Python as one of JSON."""
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
