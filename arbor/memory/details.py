"""The details of each memory type, as values and as the JSON of the memory's row (seed 004, "Layer 1").

Making one is strict: what is wrong raises Invalid. Reading one is lenient: what is missing has its default, and what an
older or newer Arbor put there stays in `extra` and is written back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from arbor.errors import Invalid
from arbor.memory.content import check_line
from arbor.memory.trust import MOST_SOURCES, Source, check_unit, merge_sources, semantic_trust
from arbor.memory.values import MemoryType

#: Longest text of one field or one entry, and most entries of a list.
TEXT_LENGTH = 4_000
LABEL_LENGTH = 100
MOST_ENTRIES = 200
#: Of a fact that nobody has doubted.
DEFAULT_CONFIDENCE = 1.0


@dataclass(frozen=True, kw_only=True)
class Emotion:
    """Valence and arousal of an event. Raises Invalid."""

    #: From -1, bad, to 1, good.
    valence: float = 0.0
    #: `joy`, `worry`…; empty for no name.
    label: str = ""
    #: How strong, 0 to 1.
    intensity: float = 0.0

    def __post_init__(self) -> None:
        check_unit("an emotion's valence", self.valence, low=-1.0)
        check_unit("an emotion's intensity", self.intensity)
        _check_line("an emotion's label", self.label, LABEL_LENGTH)

    def to_json(self) -> dict[str, Any]:
        """Return it as `from_json` reads it."""
        return _without_empty({"valence": self.valence, "label": self.label, "intensity": self.intensity})

    @classmethod
    def from_json(cls, value: Any) -> Emotion:
        """Read an emotion: an object, or its valence or its label alone. Raises Invalid."""
        if isinstance(value, str):
            return cls(label=value)
        if not isinstance(value, Mapping):
            return cls(valence=value)
        return cls(
            valence=value.get("valence", 0.0),
            label=value.get("label", ""),
            intensity=value.get("intensity", 0.0),
        )


@dataclass(frozen=True, kw_only=True)
class Detail:
    """The fields that the details of all types share."""

    type: ClassVar[MemoryType]
    #: What this Arbor does not know, as it was read.
    extra: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for the memory's row, without empty fields."""
        return {**self.extra, **_without_empty(self._known())}

    def _known(self) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, kw_only=True)
class EpisodicDetail(Detail):
    """The details of an event. Raises Invalid."""

    type = MemoryType.EPISODIC
    #: In what situation, what was done, and what came of it.
    context: str = ""
    action: str = ""
    result: str = ""
    emotion: Emotion | None = None
    #: When it happened, where that is not when it was observed; with a time zone.
    event_time: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("context", "action", "result"):
            _check_line(name, getattr(self, name), TEXT_LENGTH)
        if self.event_time is not None and self.event_time.tzinfo is None:
            raise Invalid(f"event_time must have a time zone, got {self.event_time.isoformat()}")

    def _known(self) -> dict[str, Any]:
        return {
            "context": self.context,
            "action": self.action,
            "result": self.result,
            "emotion": self.emotion.to_json() if self.emotion else None,
            "event_time": self.event_time.isoformat() if self.event_time else None,
        }


@dataclass(frozen=True, kw_only=True)
class SemanticDetail(Detail):
    """The reasons and sources of a fact. Raises Invalid."""

    type = MemoryType.SEMANTIC
    #: How sure whoever stored it was, 0 to 1; its trust is at most that.
    confidence: float = DEFAULT_CONFIDENCE
    category: str = ""
    #: What supports it, each reference once.
    sources: tuple[Source, ...] = ()
    #: Memories that it contradicts.
    contradictions: tuple[UUID, ...] = ()
    #: How it fitted what the agent believed when it was stored, from -1, against it, to 1.
    alignment: float = 0.0

    def __post_init__(self) -> None:
        check_unit("confidence", self.confidence)
        check_unit("alignment with beliefs", self.alignment, low=-1.0)
        _check_line("category", self.category, LABEL_LENGTH)
        if len(self.sources) > MOST_SOURCES:
            raise Invalid(f"a fact has at most {MOST_SOURCES} sources, got {len(self.sources)}")
        if len(self.contradictions) > MOST_ENTRIES:
            raise Invalid(f"a fact has at most {MOST_ENTRIES} contradictions, got {len(self.contradictions)}")
        if any(not isinstance(contradiction, UUID) for contradiction in self.contradictions):
            raise Invalid(f"contradictions must be ids of memories, got {list(self.contradictions)!r}")
        object.__setattr__(self, "sources", merge_sources(self.sources))
        object.__setattr__(self, "contradictions", tuple(dict.fromkeys(self.contradictions)))

    def _known(self) -> dict[str, Any]:
        return {
            "confidence": None if self.confidence == DEFAULT_CONFIDENCE else self.confidence,
            "category": self.category,
            "sources": [source.to_json() for source in self.sources],
            "contradictions": [str(contradiction) for contradiction in self.contradictions],
            "alignment": self.alignment or None,
        }

    @property
    def trust(self) -> float:
        """The trust, 0 to 1, that the fact's sources and the agent's prior belief allow."""
        return semantic_trust(confidence=self.confidence, sources=self.sources, alignment=self.alignment)

    def with_sources(self, sources: Iterable[Source]) -> SemanticDetail:
        """Return the detail with these sources added, up to the limit of a fact."""
        return replace(self, sources=merge_sources(self.sources, sources)[:MOST_SOURCES])


@dataclass(frozen=True, kw_only=True)
class ProceduralDetail(Detail):
    """The steps of a procedure; its outcomes are counted in `Practice`. Raises Invalid."""

    type = MemoryType.PROCEDURAL
    #: In order.
    steps: tuple[str, ...] = ()
    #: Preconditions of the first step.
    prerequisites: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_entries("steps", self.steps)
        _check_entries("prerequisites", self.prerequisites)

    def _known(self) -> dict[str, Any]:
        return {"steps": list(self.steps), "prerequisites": list(self.prerequisites)}


@dataclass(frozen=True, kw_only=True)
class StrategicDetail(Detail):
    """A pattern, and why it is believed to help. Raises Invalid."""

    type = MemoryType.STRATEGIC
    pattern: str = ""
    #: From 0 to 1.
    confidence: float = DEFAULT_CONFIDENCE
    #: What it was seen in.
    evidence: tuple[str, ...] = ()
    #: Where it applies.
    applicability: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_line("pattern", self.pattern, TEXT_LENGTH)
        check_unit("confidence", self.confidence)
        _check_entries("evidence", self.evidence)
        _check_entries("applicability", self.applicability)

    def _known(self) -> dict[str, Any]:
        return {
            "pattern": self.pattern,
            "confidence": None if self.confidence == DEFAULT_CONFIDENCE else self.confidence,
            "evidence": list(self.evidence),
            "applicability": list(self.applicability),
        }


#: The class of each type's detail.
DETAILS: Mapping[MemoryType, type[Detail]] = {
    detail.type: detail for detail in (EpisodicDetail, SemanticDetail, ProceduralDetail, StrategicDetail)
}


def read_detail(kind: MemoryType, written: Any) -> Detail:
    """Read the `detail` of a memory's row, whatever wrote it. Raises nothing: what cannot be read stays in `extra`."""
    if not isinstance(written, Mapping):
        return DETAILS[kind](extra={} if written is None else {"value": written})
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in written.items():
        read = _READERS[kind].get(name)
        try:
            if read is None:
                extra[name] = value
            elif value is not None:
                # Checked by itself, so that one bad field does not cost the others.
                known[name] = getattr(DETAILS[kind](**{name: read(value)}), name)
        except (Invalid, TypeError, ValueError):
            extra[name] = value
    return DETAILS[kind](**known, extra=extra)


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, (list, tuple)):
        raise Invalid(f"expected a list of texts, got {value!r}")
    if not all(isinstance(item, str) for item in value):
        raise Invalid(f"expected texts only, got {value!r}")
    return tuple(value)


def _sources(value: Any) -> tuple[Source, ...]:
    return tuple(Source.from_json(item) for item in (value if isinstance(value, list) else [value]))


def _as_is(value: Any) -> Any:
    return value


type _Readers = Mapping[str, Callable[[Any], Any]]

_READERS: Mapping[MemoryType, _Readers] = {
    MemoryType.EPISODIC: {
        "context": _as_is,
        "action": _as_is,
        "result": _as_is,
        "emotion": Emotion.from_json,
        "event_time": datetime.fromisoformat,
    },
    MemoryType.SEMANTIC: {
        "confidence": _as_is,
        "category": _as_is,
        "sources": _sources,
        "contradictions": lambda value: tuple(UUID(text) for text in _texts(value)),
        "alignment": _as_is,
    },
    MemoryType.PROCEDURAL: {"steps": _texts, "prerequisites": _texts},
    MemoryType.STRATEGIC: {
        "pattern": _as_is,
        "confidence": _as_is,
        "evidence": _texts,
        "applicability": _texts,
    },
}


def _check_line(name: str, value: Any, longest: int) -> None:
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a text, got {value!r}")
    check_line(name, value, longest)


def _check_entries(name: str, entries: Any) -> None:
    if isinstance(entries, str) or not isinstance(entries, tuple):
        raise Invalid(f"{name} must be texts in order, got {entries!r}")
    if len(entries) > MOST_ENTRIES:
        raise Invalid(f"{name} must be at most {MOST_ENTRIES}, got {len(entries)}")
    for number, entry in enumerate(entries, start=1):
        _check_line(f"{name}, number {number}", entry, TEXT_LENGTH)
        if not entry.strip():
            raise Invalid(f"{name}, number {number} must not be empty")


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}
