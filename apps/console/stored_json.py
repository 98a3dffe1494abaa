"""Read stored JSON leniently, because another version of Arbor may have written it."""

from __future__ import annotations

import json
from typing import Any


def read_dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; other values are left out."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return a text as it is, None as an empty text, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pretty(value: Any) -> str:
    """Return a value as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)
