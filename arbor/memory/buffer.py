"""The buffer: limits of buffer items, and the rule that promotes them to memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from arbor.errors import Invalid
from arbor.memory.content import check_content
from arbor.memory.importance import appraise, appraised_role
from arbor.memory.text.lexical import query_terms
from arbor.memory.trust import check_unit
from arbor.memory.values import DEFAULT_TRUST, ROLE_LENGTH, SOURCE_LENGTH, MemoryType

#: The importance, and the number of accesses, from which a buffer item becomes a memory (the constants of seed 004's
#: origin).
MATTERS_FROM = 0.75
MATTERS_AFTER = 3
#: The default lifetime of a buffer item, and the longest.
LASTS = timedelta(days=1)
LONGEST = timedelta(days=30)
#: The most buffer items of one agent; beyond them, the least important are dropped.
CAPACITY = 200
#: The least cosine with a query, and the least share of the query's words, at which a buffer item is found.
NEAR = 0.4
SHARED = 0.25
#: The most that one term adds to a stored text's weights (BM25's k1 + 1).
_MAX_TERM_WEIGHT = 2.2


@dataclass(frozen=True, kw_only=True)
class NewBufferItem:
    """A new buffer item. Raises ContentInvalid for its text, Invalid for anything else."""

    content: str
    lasts: timedelta = LASTS
    #: From 0 to 1; None: appraised like a memory.
    importance: float | None = None
    #: The speaker, as in `NewMemory`.
    role: str = ""
    source: str = ""
    #: How far it is believed, 0 to 1; the memory that it may become is trusted so far.
    trust: float = DEFAULT_TRUST

    def __post_init__(self) -> None:
        check_content(self.content)
        if not timedelta(0) < self.lasts <= LONGEST:
            raise Invalid(
                f"a buffer item must last more than 0 and at most {LONGEST.days} days, got {self.lasts}"
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
        """The item's importance, appraised where none is given."""
        if self.importance is not None:
            return self.importance
        role = appraised_role(role=self.role, source=self.source)
        return appraise(self.content, role=role, type=MemoryType.EPISODIC).importance


def shared_words(text: str) -> dict[int, float]:
    """Return a query's weights, whose product with a stored vector is the share of the query's words in the item, 0 to 1.

    All words have the same weight, because a buffer is too small for statistics.
    """
    positions = {term.index for term in query_terms(text)} - {0}
    return {position: 1 / (_MAX_TERM_WEIGHT * len(positions)) for position in positions}
