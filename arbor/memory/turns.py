"""Turns of a conversation, and their conversion to memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from arbor.errors import Invalid
from arbor.memory.values import MemoryType, NewMemory

#: What somebody said may be wrong or untrue; what the agent noticed itself it trusts wholly. Our choice.
HEARSAY_TRUST = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing that was said."""

    #: The number of its line in the file, or of the turn in a JSON document, from 1.
    line: int
    #: The stretch of conversation it belongs to, and its place in there, from 0.
    session: str
    position: int
    #: A name or a role.
    speaker: str
    text: str
    #: With a time zone.
    at: datetime
    #: What the source itself calls it, such as `D3:7`; empty when it has no name for it.
    source_id: str = ""

    def as_memory(self, *, source: str) -> NewMemory:
        """Return the episodic memory of this turn. Raises Invalid when it fits into no memory.

        The content is the utterance alone: speaker, time and context are in fields of its
        own, where recall weighs each by itself (docs/explanation/recall.md: a name within the text gains nothing).
        """
        return NewMemory(
            type=MemoryType.EPISODIC,
            content=self.text,
            occurred_at=self.at,
            session=self.session,
            position=self.position,
            role=self.speaker,
            source=source,
            trust=HEARSAY_TRUST,
            detail={"source_id": self.source_id} if self.source_id else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that could not be read; the reading went on behind it."""

    #: Its number, as in `Turn.line`.
    number: int
    reason: str


def checked(turn: Turn) -> Turn | BadLine:
    """Return the turn, or why it cannot be remembered."""
    try:
        turn.as_memory(source="")
    except Invalid as exc:
        return BadLine(number=turn.line, reason=str(exc))
    return turn


def is_plausible(moment: datetime) -> bool:
    """Return whether something can have been said then; adding hours to it stays within what datetime holds."""
    return 1000 <= moment.year <= 3000
