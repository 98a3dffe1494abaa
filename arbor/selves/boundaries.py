"""Boundaries: what an agent does not do, whoever asks (seed 004, "Boundaries")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from arbor.errors import Invalid, LimitReached
from arbor.selves.values import SOURCE_LENGTH, TEXT_LENGTH, check_share, check_text

#: Of one boundary; ours: each text is held against all of them.
MOST_PATTERNS = 30
MOST_EXAMPLES = 20
PATTERN_LENGTH = 100
EXAMPLE_LENGTH = 300
#: Of one agent's own; ours.
MAX_BOUNDARIES = 50
_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


class BoundaryType(StrEnum):
    """What a boundary protects."""

    ETHICAL = "ethical"
    IDENTITY = "identity"
    RESOURCE = "resource"


class BoundaryResponse(StrEnum):
    """What happens at a boundary."""

    #: It is not done.
    REFUSE = "refuse"
    #: It is not done as asked; the agent says what it could do instead.
    NEGOTIATE = "negotiate"
    #: It is done, and noted.
    FLAG = "flag"


@dataclass(frozen=True, kw_only=True)
class NewBoundary:
    """A boundary to be added to an agent's, or put instead of one that every agent has. Raises Invalid."""

    name: str
    type: BoundaryType
    response: BoundaryResponse
    description: str = ""
    #: Words and phrases on word borders; one that ends in `*` stands for every word that begins so.
    patterns: Sequence[str] = ()
    #: Sentences; what means the same calls it up.
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
