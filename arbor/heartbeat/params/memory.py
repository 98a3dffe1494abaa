"""Parameters of the actions on memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    PrivateAttr,
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
INSIGHT_LENGTH = 2_000
#: Memories that one artifact or insight may name as its sources.
MAX_MATERIALS = 20
MAX_RECALLED = 20
# The origin of seed 000 recalls five by default.
DEFAULT_RECALLED = 5
#: Steps that one action stores, and characters of a step, a context, a pattern.
MAX_STEPS = 20
STEP_LENGTH = 500
Id = Annotated[str, StringConstraints(min_length=1, max_length=100)]
#: The name of something that restricts a recall; empty: nothing does.
_FilterName = Annotated[
    str, BeforeValidator(lambda value: "" if value is None else value), StringConstraints(max_length=200)
]
#: Values that say nothing.
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_Step = Annotated[str, StringConstraints(min_length=1, max_length=STEP_LENGTH)]


def needed_text(what: str, *, most: int, then: str = "") -> Any:
    """Return the field of a required text; `what` and `then` are parts of its description."""
    return Field(min_length=1, max_length=most, description=f"{what}, 1 to {most} characters{then}")


class ActionParams(BaseModel, frozen=True, str_strip_whitespace=True, allow_inf_nan=False):
    """The parameters of an action; unknown and unused ones are ignored, and the agent is notified of them."""

    @property
    def unused(self) -> frozenset[str]:
        """Return the parameters that have no effect beside the others."""
        return frozenset()

    @property
    def overruled(self) -> frozenset[str]:
        """Return the parameters whose value another one has replaced."""
        return frozenset()

    def ignored(self, written: Mapping[str, Any]) -> Iterator[str]:
        """Yield the written parameters that have no effect, also those of listed items, such as `goals[0].mood`."""
        fields = type(self).model_fields
        for name, value in written.items():
            if value in _EMPTY:
                # A model may fill in every name that it knows.
                continue
            if name not in fields or name in self.unused or name in self.overruled:
                yield name
            elif isinstance(value, list):
                for index, (part, item) in enumerate(zip(value, getattr(self, name), strict=False)):
                    if isinstance(item, ActionParams):
                        yield from (f"{name}[{index}].{key}" for key in item.ignored(part))


def _lower_case(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


#: Read the word of a choice in lower case.
LOWER_CASE = BeforeValidator(_lower_case)


def _lower_words(value: Any) -> Any:
    """Return words in lower case; a single word becomes a list."""
    written = [value] if isinstance(value, str) else value
    return [_lower_case(word) for word in written] if isinstance(written, list | tuple) else written


def _read_moment(value: Any) -> Any:
    """Return the datetime of a day or time, UTC by default; None for an empty value."""
    if value is None or value == "" or isinstance(value, datetime):
        return value or None
    try:
        moment = datetime.fromisoformat(value.strip() if isinstance(value, str) else "")
        return to_utc(moment)
    except (Invalid, ValueError):
        raise ValueError("expected a day such as 2026-01-31, or 2026-01-31T18:00 (UTC)") from None


_Moment = Annotated[datetime | None, BeforeValidator(_read_moment)]
#: The schema accepts any strings, so that an unknown type is refused with the list of types.
_Types = Annotated[
    tuple[MemoryType, ...],
    BeforeValidator(_lower_words),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": len(MemoryType)}),
]


class SearchParams(ActionParams):
    """A query. Its description is short, because every prompt offers the actions that have it."""

    query: str = Field(min_length=1, max_length=QUERY_LENGTH, description="text")


class RecallParams(ActionParams):
    """A query and filters."""

    query: str = needed_text("what to look for", most=QUERY_LENGTH)
    limit: int = Field(
        DEFAULT_RECALLED,
        ge=1,
        le=MAX_RECALLED,
        description=f"how many, 1 to {MAX_RECALLED} (default {DEFAULT_RECALLED})",
    )
    types: _Types = Field((), description="of these types")
    since: _Moment = Field(None, description="from YYYY-MM-DD on")
    until: _Moment = Field(None, description="before that day")
    concept: _FilterName = Field("", description="its name")
    cluster: _FilterName = Field("", description="its name")
    episode: _FilterName = Field("", description="its id")

    @field_validator("episode")
    @classmethod
    def _names_episode(cls, value: str) -> str:
        if value and read_id(value) is None:
            raise ValueError("expected the id of an episode, as a summary names it")
        return value

    @model_validator(mode="after")
    def _since_is_before_until(self) -> Self:
        if self.since is not None and self.until is not None and self.since >= self.until:
            form = "%Y-%m-%d %H:%M:%S" if self.since.date() == self.until.date() else "%Y-%m-%d"
            raise ValueError(f"since must be before until, got {self.since:{form}} and {self.until:{form}}")
        return self


def _steps(value: Any) -> Any:
    """Return the steps that are not empty; a text becomes a list with a step for each line."""
    written = value.splitlines() if isinstance(value, str) else value
    if not isinstance(written, list | tuple):
        return written
    return [step for step in written if not isinstance(step, str) or step.strip()]


class RememberParams(ActionParams):
    """A text to store, and what belongs to it. Steps make a procedure of it, a pattern a strategy."""

    content: str = needed_text("what to keep", most=CONTENT_LENGTH)
    type: Annotated[MemoryType, LOWER_CASE] = Field(
        MemoryType.SEMANTIC, description="episodic, semantic, procedural or strategic (default semantic)"
    )
    importance: float | None = Field(None, ge=0, le=1, description="0 to 1")
    steps: Annotated[tuple[_Step, ...], BeforeValidator(_steps)] = Field(
        (), max_length=MAX_STEPS, description="of a procedure"
    )
    context: str = Field("", max_length=STEP_LENGTH, description="situation")
    pattern: str = Field("", max_length=STEP_LENGTH, description="of a strategy")
    _has_other_type: bool = PrivateAttr(False)

    @model_validator(mode="after")
    def _fit_type(self) -> Self:
        """Set the type that the steps or the pattern require."""
        fitting = MemoryType.PROCEDURAL if self.steps else MemoryType.STRATEGIC if self.pattern else self.type
        if fitting is self.type:
            return self
        fitted = self.model_copy(update={"type": fitting})
        fitted._has_other_type = True
        return fitted

    @property
    def overruled(self) -> frozenset[str]:
        """Return the type, if the steps or the pattern required another one."""
        return frozenset({"type"} if self._has_other_type else ())


def _material_ids(which: str) -> Any:
    """Return the field of the ids of memories; `which` is the rest of its description."""
    return Field((), max_length=MAX_MATERIALS, description=f"ids of up to {MAX_MATERIALS} memories {which}")


class ReflectParams(ActionParams):
    """An insight, and the memories that it is based on."""

    insight: str = needed_text("the pattern or lesson you notice", most=INSIGHT_LENGTH, then="; it is kept")
    focus: str = Field("", max_length=QUERY_LENGTH, description="what it is about")
    rests_on: tuple[Id, ...] = _material_ids("that it rests on")


class ConnectParams(ActionParams):
    """Two things and their relation."""

    from_id: Id = Field(description="id of a memory, goal or belief")
    to_id: Id = Field(description="id of another one")
    relation: Annotated[Relation, LOWER_CASE] = Field(description="one of " + ", ".join(Relation))


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

    topic: str = needed_text("what it is about", most=QUERY_LENGTH)
    content: str = needed_text("the work itself, whole", most=CONTENT_LENGTH, then="; it is kept")
    materials: tuple[Id, ...] = _material_ids("it is made from")
    kind: Annotated[ArtifactKind, LOWER_CASE] = Field(
        ArtifactKind.CONCLUSION, description="conclusion, text or creative (default conclusion)"
    )
