"""The details of each memory type, as values and as the JSON of the memory's row (seed 004, "Layer 1").

Constructors are strict: a wrong value raises Invalid. `read_detail` is lenient: a missing field has its default, and a field
of an older or newer version of Arbor is retained in `extra` and written back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from arbor.clock import check_time_zone
from arbor.errors import Invalid
from arbor.memory.content import check_line
from arbor.memory.trust import MAX_SOURCES, Source, check_unit, merge_sources, semantic_trust
from arbor.memory.values import MemoryType

#: The longest text of one field or entry, the longest label, and the most entries of a list.
TEXT_LENGTH = 4_000
LABEL_LENGTH = 100
MAX_ENTRIES = 200
#: The confidence of a fact that nobody has doubted.
DEFAULT_CONFIDENCE = 1.0


@dataclass(frozen=True, kw_only=True)
class Emotion:
    """A feeling about an event: valence, name and strength. Raises Invalid."""

    #: From -1, bad, to 1, good.
    valence: float = 0.0
    #: `joy`, `worry`…; empty for no name.
    label: str = ""
    #: The strength, 0 to 1.
    intensity: float = 0.0

    def __post_init__(self) -> None:
        check_unit("an emotion's valence", self.valence, low=-1.0)
        check_unit("an emotion's intensity", self.intensity)
        _check_line("an emotion's label", self.label, LABEL_LENGTH)

    def to_json(self) -> dict[str, Any]:
        """Return the emotion as an object that `from_json` can read."""
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
    #: Fields that this version of Arbor does not know or cannot read, as they were stored.
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
    #: The situation, the action, and its result.
    context: str = ""
    action: str = ""
    result: str = ""
    emotion: Emotion | None = None
    #: The time of the event, with a time zone, where it differs from the time of observation.
    event_time: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("context", "action", "result"):
            _check_line(name, getattr(self, name), TEXT_LENGTH)
        check_time_zone("event_time", self.event_time)

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
    #: The confidence of whoever stored the fact, 0 to 1; its trust is never higher.
    confidence: float = DEFAULT_CONFIDENCE
    category: str = ""
    #: The sources that support the fact, each reference once.
    sources: tuple[Source, ...] = ()
    #: Memories that the fact contradicts.
    contradictions: tuple[UUID, ...] = ()
    #: The fact's agreement with the agent's beliefs when it was stored, from -1 (contradicts them) to 1.
    alignment: float = 0.0

    def __post_init__(self) -> None:
        check_unit("confidence", self.confidence)
        check_unit("alignment with beliefs", self.alignment, low=-1.0)
        _check_line("category", self.category, LABEL_LENGTH)
        if len(self.sources) > MAX_SOURCES:
            raise Invalid(f"a fact has at most {MAX_SOURCES} sources, got {len(self.sources)}")
        if len(self.contradictions) > MAX_ENTRIES:
            raise Invalid(f"a fact has at most {MAX_ENTRIES} contradictions, got {len(self.contradictions)}")
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
        return replace(self, sources=merge_sources(self.sources, sources)[:MAX_SOURCES])


@dataclass(frozen=True, kw_only=True)
class ProceduralDetail(Detail):
    """The steps of a procedure; its outcomes are counted in `PracticeCounts`. Raises Invalid."""

    type = MemoryType.PROCEDURAL
    #: The steps in the order of execution.
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
    """A pattern, and the evidence that it helps. Raises Invalid."""

    type = MemoryType.STRATEGIC
    pattern: str = ""
    #: The confidence that the pattern helps, 0 to 1.
    confidence: float = DEFAULT_CONFIDENCE
    #: Cases in which the pattern was observed.
    evidence: tuple[str, ...] = ()
    #: Situations that the pattern applies to.
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


def read_detail(kind: MemoryType, stored: Any) -> Detail:
    """Read the `detail` of a memory's row of any version; fields that cannot be read are retained in `extra`."""
    if not isinstance(stored, Mapping):
        return DETAILS[kind](extra={} if stored is None else {"value": stored})
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in stored.items():
        reader = _READERS[kind].get(name)
        try:
            if reader is None:
                extra[name] = value
            elif value is not None:
                # Each field is checked by itself, so that a wrong one does not discard the others.
                known[name] = getattr(DETAILS[kind](**{name: reader(value)}), name)
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


def _unchanged(value: Any) -> Any:
    return value


type _Readers = Mapping[str, Callable[[Any], Any]]

_READERS: Mapping[MemoryType, _Readers] = {
    MemoryType.EPISODIC: {
        "context": _unchanged,
        "action": _unchanged,
        "result": _unchanged,
        "emotion": Emotion.from_json,
        "event_time": datetime.fromisoformat,
    },
    MemoryType.SEMANTIC: {
        "confidence": _unchanged,
        "category": _unchanged,
        "sources": _sources,
        "contradictions": lambda value: tuple(UUID(text) for text in _texts(value)),
        "alignment": _unchanged,
    },
    MemoryType.PROCEDURAL: {"steps": _texts, "prerequisites": _texts},
    MemoryType.STRATEGIC: {
        "pattern": _unchanged,
        "confidence": _unchanged,
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
    if len(entries) > MAX_ENTRIES:
        raise Invalid(f"{name} must be at most {MAX_ENTRIES}, got {len(entries)}")
    for number, entry in enumerate(entries, start=1):
        _check_line(f"{name}, number {number}", entry, TEXT_LENGTH)
        if not entry.strip():
            raise Invalid(f"{name}, number {number} must not be empty")


def _without_empty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}
