"""Validation of a call's arguments by the schema of its tool."""

from __future__ import annotations

import importlib
from functools import lru_cache
from itertools import islice
from typing import Any

from arbor.tools.schemas import Schema
from arbor.tools.texts import one_line

_FAULTS_SHOWN = 3
_FAULT_LENGTH = 200


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
