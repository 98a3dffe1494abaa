"""Shared types of parameters, and the actions without parameters."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

QUERY_LENGTH = 500
CONTENT_LENGTH = 4_000
REASON_LENGTH = 500
#: Memories that one artifact or insight may name as its sources.
MAX_MATERIALS = 20


def lower(value: Any) -> Any:
    """Return a word in lower case."""
    return value.strip().lower() if isinstance(value, str) else value


def text_list(description: str, *, most: int) -> Any:
    """Return the schema of an optional list of texts."""
    items = {"type": "string"}
    return WithJsonSchema({"type": "array", "items": items, "maxItems": most, "description": description})


def needed_text(what: str, *, most: int, then: str = "") -> Any:
    """Return the field of a required text; `what` and `then` are parts of its description."""
    return Field(min_length=1, max_length=most, description=f"{what}, 1 to {most} characters{then}")


class ActionParams(BaseModel):
    """The parameters of an action; unknown ones are ignored, and listed in the decision."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, allow_inf_nan=False)


Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class RestParams(ActionParams):
    """No parameters."""


class ObserveParams(ActionParams):
    """No parameters."""


class ReviewGoalsParams(ActionParams):
    """No parameters."""
