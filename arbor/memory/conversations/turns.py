"""Turns of a conversation, and their conversion to memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from arbor.errors import Invalid
from arbor.memory.values import MemoryType, NewMemory

#: The trust in an utterance, which may be wrong or untrue; the agent's own observations have trust 1.
HEARSAY_TRUST = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One utterance of a conversation."""

    #: The number of the line in the file, or of the turn in a JSON document, from 1.
    line: int
    #: The session that the turn belongs to, and its position in it, from 0.
    session: str
    position: int
    #: A name or a role.
    speaker: str
    text: str
    #: With a time zone.
    at: datetime
    #: The turn's name in the source, such as `D3:7`, if any.
    source_id: str = ""

    def as_memory(self, *, source: str) -> NewMemory:
        """Return the episodic memory of this turn. Raises Invalid for a turn that no memory can store.

        The content is the utterance alone: speaker, time and context have fields of their own, which recall scores
        separately (docs/explanation/recall.md: a name added to the text does not improve recall).
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
    """A line that could not be read; reading continued after it."""

    #: The number of the line, as in `Turn.line`.
    number: int
    reason: str


def check_turn_content(turn: Turn) -> Turn | BadLine:
    """Return the turn, or a BadLine with the reason why it cannot be remembered."""
    try:
        turn.as_memory(source="")
    except Invalid as exc:
        return BadLine(number=turn.line, reason=str(exc))
    return turn


def is_plausible(moment: datetime) -> bool:
    """Return whether the year is 1000 to 3000, so that hours can be added without leaving the range of datetime."""
    return 1000 <= moment.year <= 3000
