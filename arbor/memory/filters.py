"""The filter of a recall: a value that is checked once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from arbor.errors import Invalid
from arbor.memory.timespan import check_moment
from arbor.memory.values import MemoryType


@dataclass(frozen=True, kw_only=True)
class RecallFilter:
    """The conditions that a recalled memory meets; an empty field does not restrict. Raises Invalid for an impossible value."""

    types: frozenset[MemoryType] = frozenset()
    #: When it happened: from `since` on, before `until`.
    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    without_session: str = ""
    #: From 0 to 1.
    min_importance: float = 0.0
    min_trust: float = 0.0
    #: A concept it is a case of, or of a narrower one: its id or its name.
    concept: UUID | str | None = None
    episode: UUID | None = None

    def __post_init__(self) -> None:
        if wrong := sorted(str(memory_type) for memory_type in self.types if memory_type not in MemoryType):
            raise Invalid(f"types must be of {', '.join(MemoryType)}; got {', '.join(wrong)}")
        object.__setattr__(self, "types", frozenset(MemoryType(memory_type) for memory_type in self.types))
        for name, value in (("min_importance", self.min_importance), ("min_trust", self.min_trust)):
            if not 0 <= value <= 1:
                raise Invalid(f"{name} must be 0 to 1, got {value}")
        for name, text in (("session", self.session), ("without_session", self.without_session)):
            if "\0" in text:
                raise Invalid(f"{name} must have no NUL, got {text!r}")
        self._check_times()
        if isinstance(self.concept, str) and (not self.concept.strip() or "\0" in self.concept):
            raise Invalid(f"a concept is named by its id or its name, without NUL; got {self.concept!r}")

    def _check_times(self) -> None:
        for name, moment in (("since", self.since), ("until", self.until)):
            if moment is not None:
                check_moment(name, moment)
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise Invalid(
                f"since must be before until, got {self.since.isoformat()} and {self.until.isoformat()}"
            )


#: Every memory.
EVERYTHING = RecallFilter()
