"""The fields that an audited act changed, before and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class AuditChange:
    """The changed fields with their values before and after an act, as JSON. A new thing has no before, a removed one no after."""

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.before or self.after)


def change_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> AuditChange:
    """Return the fields that differ between two states; a missing field equals None."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return AuditChange(
        before={name: json_value(before[name]) for name in names if name in before},
        after={name: json_value(after[name]) for name in names if name in after},
    )


def json_value(value: Any) -> Any:
    """Return a value as JSON: ids, decimals and times become texts. Raises TypeError for a type without a rule."""
    if isinstance(value, Enum):
        return json_value(value.value)
    if isinstance(value, Mapping):
        return {str(name): json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [json_value(part) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts
    if isinstance(value, UUID | Decimal):
        return str(value)
    if isinstance(value, date | datetime):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a change cannot have a value of {type(value).__name__}")
