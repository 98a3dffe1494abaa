"""Boundaries: the limits of an agent's conduct, whoever asks (seed 004, "Boundaries")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arbor.errors import Invalid, LimitReached
from arbor.selves.values import SOURCE_LENGTH, TEXT_LENGTH, check_share, check_text

#: Limits of one boundary, because each text is checked against all patterns and examples.
MOST_PATTERNS = 30
MOST_EXAMPLES = 20
PATTERN_LENGTH = 100
EXAMPLE_LENGTH = 300
#: The most boundaries of an agent's own.
MAX_BOUNDARIES = 50
_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


class BoundaryType(StrEnum):
    """The subject that a boundary protects."""

    ETHICAL = "ethical"
    IDENTITY = "identity"
    RESOURCE = "resource"


class BoundaryResponse(StrEnum):
    """The response to a boundary match."""

    #: The action is not done.
    REFUSE = "refuse"
    #: The action is not done as asked; the agent offers an alternative.
    NEGOTIATE = "negotiate"
    #: The action is done, and recorded.
    FLAG = "flag"


@dataclass(frozen=True, kw_only=True)
class NewBoundary:
    """A boundary to add to an agent, or to override a default one. Raises Invalid."""

    name: str
    type: BoundaryType
    response: BoundaryResponse
    description: str = ""
    #: Words and phrases, matched on word borders; a final `*` matches every ending.
    patterns: Sequence[str] = ()
    #: Sentences; texts of the same meaning match.
    examples: Sequence[str] = ()
    flexibility: float = 0.0
    importance: float = 0.5
    source: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise Invalid(
                "a boundary's name is 1 to 60 small letters, digits and underscores, beginning with a letter, such as"
                f" no_gossip; got {self.name[:80]!r}"
            )
        check_text("a boundary's description", self.description, longest=TEXT_LENGTH, empty=True)
        check_text("source", self.source, longest=SOURCE_LENGTH, empty=True)
        check_share("flexibility", self.flexibility)
        check_share("importance", self.importance)
        if not self.patterns and not self.examples:
            raise Invalid("a boundary needs a pattern or an example: else nothing ever calls it up")
        for what, texts, most, longest in (
            ("pattern", self.patterns, MOST_PATTERNS, PATTERN_LENGTH),
            ("example", self.examples, MOST_EXAMPLES, EXAMPLE_LENGTH),
        ):
            if len(texts) > most:
                raise LimitReached(f"a boundary has at most {most} {what}s, got {len(texts)}")
            for text in texts:
                check_text(f"a boundary's {what}", text.strip(" *"), longest=longest)
