"""What the parameters of actions are made of, and the actions that take none."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

QUERY_LENGTH = 500
CONTENT_LENGTH = 4_000
REASON_LENGTH = 500
#: Memories that one artifact or insight may name as its ground. Ours.
MAX_MATERIALS = 20


def lower(value: Any) -> Any:
    """Return what a model wrote for a word, without regard to case."""
    return value.strip().lower() if isinstance(value, str) else value


def text_list(description: str, *, most: int) -> Any:
    """Return what a schema says of a list of texts that may be left out."""
    items = {"type": "string"}
    return WithJsonSchema({"type": "array", "items": items, "maxItems": most, "description": description})


def needed_text(what: str, *, most: int, then: str = "") -> Any:
    """Return what a text that may not be empty is: what for, of up to how many characters, and what is said after that."""
    return Field(min_length=1, max_length=most, description=f"{what}, 1 to {most} characters{then}")


class ActionParams(BaseModel):
    """The parameters of an action. What is not known is ignored, and the decision says so."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, allow_inf_nan=False)


Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class RestParams(ActionParams):
    """Nothing."""


class ObserveParams(ActionParams):
    """Nothing."""


class ReviewGoalsParams(ActionParams):
    """Nothing."""
