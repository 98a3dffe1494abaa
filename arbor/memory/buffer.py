"""The buffer: limits of buffer items, and the rule that promotes them to memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from arbor.errors import Invalid
from arbor.memory.content import check_content
from arbor.memory.importance import appraise, appraised_role
from arbor.memory.lexical import query_terms
from arbor.memory.trust import check_unit
from arbor.memory.values import DEFAULT_TRUST, ROLE_LENGTH, SOURCE_LENGTH, MemoryType

#: What is held becomes a memory when it weighs so much, or when the agent came back to it so often (the constants of
#: seed 004's origin).
MATTERS_FROM = 0.75
MATTERS_AFTER = 3
#: The default lifetime of a buffer item, and the longest.
LASTS = timedelta(days=1)
LONGEST = timedelta(days=30)
#: Buffer items of one agent; the least important make room.
CAPACITY = 200
#: A thing comes to mind when its meaning is so near, or it has such a share of the query's words.
NEAR = 0.4
SHARED = 0.25
#: The most that one term adds to a stored text's weights (BM25's k1 + 1).
_MOST = 2.2


@dataclass(frozen=True, kw_only=True)
class NewBufferItem:
    """A new buffer item. Raises ContentInvalid for its text, Invalid for anything else."""

    content: str
    lasts: timedelta = LASTS
    #: From 0 to 1; None: appraised like a memory.
    importance: float | None = None
    #: Who said it, as in `NewMemory`.
    role: str = ""
    source: str = ""
    #: How far it is believed, 0 to 1; the memory that it may become is trusted so far.
    trust: float = DEFAULT_TRUST

    def __post_init__(self) -> None:
        check_content(self.content)
        if not timedelta(0) < self.lasts <= LONGEST:
            raise Invalid(
                f"a buffer item lasts more than no time and at most {LONGEST.days} days, got {self.lasts}"
            )
        if self.importance is not None and not 0 <= self.importance <= 1:
            raise Invalid(f"importance must be a number from 0 to 1, got {self.importance}")
        check_unit("trust", self.trust)
        for name, value, longest in (
            ("role", self.role, ROLE_LENGTH),
            ("source", self.source, SOURCE_LENGTH),
        ):
            if len(value) > longest or "\0" in value:
                raise Invalid(f"{name} must have at most {longest} characters and no NUL, got {len(value)}")

    @property
    def weight(self) -> float:
        """Its importance, appraised if nobody said it."""
        if self.importance is not None:
            return self.importance
        role = appraised_role(role=self.role, source=self.source)
        return appraise(self.content, role=role, type=MemoryType.EPISODIC).importance


def matters(*, importance: float, accesses: int) -> bool:
    """Return whether a buffer item is worth remembering."""
    return importance >= MATTERS_FROM or accesses >= MATTERS_AFTER


def shared_words(text: str) -> dict[int, float]:
    """Return the query's side such that its product with a stored vector is the share of its words that are there, 0 to 1.

    All words count the same: a buffer is too small for statistics.
    """
    places = {term.index for term in query_terms(text)} - {0}
    return {place: 1 / (_MOST * len(places)) for place in places}
