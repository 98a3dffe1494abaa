"""Parameters of the actions on memory."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from arbor.clock import to_utc
from arbor.errors import Invalid
from arbor.ids import read_id
from arbor.memory.relations import Relation
from arbor.memory.values import MemoryType

QUERY_LENGTH = 500
CONTENT_LENGTH = 4_000
REASON_LENGTH = 500
#: Memories that one artifact or insight may name as its sources.
MAX_MATERIALS = 20


def lower_case(value: Any) -> Any:
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


INSIGHT_LENGTH = 2_000
MAX_RECALLED = 20
# The origin of seed 000 recalls five by default.
DEFAULT_RECALLED = 5


def _lower_words(value: Any) -> Any:
    """Return a list of words in lower case, also of a single word."""
    written = [value] if isinstance(value, str) else value
    return [lower_case(word) for word in written] if isinstance(written, list | tuple) else written


def _moment(value: Any) -> Any:
    """Return a date or time, UTC by default."""
    if value is None or value == "" or isinstance(value, datetime):
        return value or None
    try:
        moment = datetime.fromisoformat(value.strip() if isinstance(value, str) else "")
        return to_utc(moment)
    except (Invalid, ValueError):
        raise ValueError("expected a day such as 2026-01-31, or 2026-01-31T18:00 (UTC)") from None


def _named(value: Any) -> Any:
    """Return a name, empty for none."""
    return "" if value is None else value


#: The name of something that restricts a recall; empty: nothing does.
FilterName = Annotated[
    str, BeforeValidator(_named), StringConstraints(max_length=200), WithJsonSchema({"type": "string"})
]


class SearchParams(ActionParams):
    """A query. Its description is short, because every prompt offers the actions that have it."""

    query: Annotated[str, Field(min_length=1, max_length=QUERY_LENGTH, description="text")]


class RecallParams(ActionParams):
    """A query and filters."""

    query: Annotated[str, needed_text("what to look for", most=QUERY_LENGTH)]
    limit: Annotated[
        int,
        Field(
            ge=1, le=MAX_RECALLED, description=f"how many, 1 to {MAX_RECALLED} (default {DEFAULT_RECALLED})"
        ),
    ] = DEFAULT_RECALLED
    types: Annotated[
        tuple[MemoryType, ...],
        BeforeValidator(_lower_words),
        Field(description="of these types"),
        text_list("", most=len(MemoryType)),
    ] = ()
    since: Annotated[
        datetime | None,
        BeforeValidator(_moment),
        Field(description="from YYYY-MM-DD on"),
        WithJsonSchema({"type": "string"}),
    ] = None
    until: Annotated[
        datetime | None,
        BeforeValidator(_moment),
        Field(description="before that day"),
        WithJsonSchema({"type": "string"}),
    ] = None

    concept: Annotated[FilterName, Field(description="its name")] = ""
    cluster: Annotated[FilterName, Field(description="its name")] = ""
    episode: Annotated[FilterName, Field(description="its id")] = ""

    @field_validator("episode")
    @classmethod
    def _names_episode(cls, value: str) -> str:
        if value and read_id(value) is None:
            raise ValueError("expected the id of an episode, as a summary names it")
        return value

    @model_validator(mode="after")
    def _since_is_before_until(self) -> Self:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ValueError(
                f"since must be before until, got {self.since:%Y-%m-%d} and {self.until:%Y-%m-%d}"
            )
        return self


#: Steps that one action stores, and characters of a step, a context, a pattern.
MAX_STEPS = 20
STEP_LENGTH = 500


def _steps(value: Any) -> Any:
    """Return a list of steps, also of a text with one on each line; empty ones are left out."""
    written = value.splitlines() if isinstance(value, str) else value
    if not isinstance(written, list | tuple):
        return written
    return [step for step in written if not isinstance(step, str) or step.strip()]


class RememberParams(ActionParams):
    """A text to store, and what belongs to it. Steps make a procedure of it, a pattern a strategy."""

    content: Annotated[str, needed_text("what to keep", most=CONTENT_LENGTH)]
    type: Annotated[
        MemoryType,
        BeforeValidator(lower_case),
        Field(description="episodic, semantic, procedural or strategic (default semantic)"),
    ] = MemoryType.SEMANTIC
    importance: Annotated[
        float | None,
        Field(ge=0, le=1, description="0 to 1"),
        WithJsonSchema(
            {
                "type": ["number", "null"],
                "minimum": 0,
                "maximum": 1,
                "description": "0 to 1",
            }
        ),
    ] = None
    steps: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=STEP_LENGTH)], ...],
        BeforeValidator(_steps),
        Field(max_length=MAX_STEPS, description="of a procedure"),
        text_list("of a procedure", most=MAX_STEPS),
    ] = ()
    context: Annotated[
        str,
        StringConstraints(max_length=STEP_LENGTH),
        Field(description="situation"),
    ] = ""
    pattern: Annotated[
        str,
        StringConstraints(max_length=STEP_LENGTH),
        Field(description="of a strategy"),
    ] = ""

    @model_validator(mode="after")
    def _of_a_type(self) -> Self:
        """Set the type that the steps or the pattern require."""
        fitting = MemoryType.PROCEDURAL if self.steps else MemoryType.STRATEGIC if self.pattern else self.type
        return self if fitting is self.type else self.model_copy(update={"type": fitting})


class ReflectParams(ActionParams):
    """An insight, and the memories that it is based on."""

    insight: Annotated[
        str, needed_text("the pattern or lesson you notice", most=INSIGHT_LENGTH, then="; it is kept")
    ]
    focus: Annotated[
        str,
        StringConstraints(max_length=QUERY_LENGTH),
        Field(description="what it is about"),
    ] = ""
    rests_on: Annotated[
        tuple[Id, ...],
        Field(
            max_length=MAX_MATERIALS, description=f"ids of up to {MAX_MATERIALS} memories that it rests on"
        ),
        text_list(f"ids of up to {MAX_MATERIALS} memories that it rests on", most=MAX_MATERIALS),
    ] = ()


class ConnectParams(ActionParams):
    """Two things and their relation."""

    from_id: Annotated[Id, Field(description="id of a memory, goal or belief")]
    to_id: Annotated[Id, Field(description="id of another one")]
    relation: Annotated[
        Relation, BeforeValidator(lower_case), Field(description="one of " + ", ".join(Relation))
    ]


class ArtifactKind(StrEnum):
    """The kinds of synthesis (seed 004, 3.2.4)."""

    #: A conclusion from the materials.
    CONCLUSION = "conclusion"
    #: A text about the materials.
    TEXT = "text"
    #: Something new.
    CREATIVE = "creative"


class SynthesizeParams(ActionParams):
    """The work, and the memories that it is made from."""

    topic: Annotated[str, needed_text("what it is about", most=QUERY_LENGTH)]
    content: Annotated[str, needed_text("the work itself, whole", most=CONTENT_LENGTH, then="; it is kept")]
    materials: Annotated[
        tuple[Id, ...],
        Field(max_length=MAX_MATERIALS, description=f"ids of up to {MAX_MATERIALS} memories it is made from"),
        text_list(f"ids of up to {MAX_MATERIALS} memories it is made from", most=MAX_MATERIALS),
    ] = ()
    kind: Annotated[
        ArtifactKind,
        BeforeValidator(lower_case),
        Field(description="conclusion, text or creative (default conclusion)"),
    ] = ArtifactKind.CONCLUSION
