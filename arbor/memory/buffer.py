"""The buffer: limits of buffer items, and the rule that promotes them to memories."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from arbor.errors import Invalid
from arbor.memory.content import check_content, check_line
from arbor.memory.importance import appraise, appraised_role
from arbor.memory.text.lexical import MAX_TERM_WEIGHT, query_terms
from arbor.memory.text.phrases import WordLists
from arbor.memory.trust import check_unit
from arbor.memory.values import DEFAULT_TRUST, ROLE_LENGTH, SOURCE_LENGTH, MemoryType

#: The importance, and the number of accesses, from which a buffer item becomes a memory (the constants of seed 004's
#: origin).
PROMOTION_IMPORTANCE = 0.75
PROMOTION_ACCESSES = 3
#: The default lifetime of a buffer item, and the longest.
DEFAULT_LIFETIME = timedelta(days=1)
LONGEST_LIFETIME = timedelta(days=30)
#: The most buffer items of one agent; beyond them, the least important are dropped.
CAPACITY = 200
#: The least cosine with a query, and the least share of the query's words, at which a buffer item is found.
MIN_COSINE = 0.4
MIN_WORD_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class NewBufferItem:
    """A new buffer item. Raises ContentInvalid for its text, Invalid for anything else."""

    content: str
    lasts: timedelta = DEFAULT_LIFETIME
    #: From 0 to 1; None: appraised like a memory.
    importance: float | None = None
    #: The speaker, as in `NewMemory`.
    role: str = ""
    source: str = ""
    #: How far the item is believed, 0 to 1; a memory that it is promoted to gets the same trust.
    trust: float = DEFAULT_TRUST

    def __post_init__(self) -> None:
        check_content(self.content)
        if not timedelta(0) < self.lasts <= LONGEST_LIFETIME:
            raise Invalid(
                f"a buffer item must last more than 0 and at most {LONGEST_LIFETIME.days} days, got {self.lasts}"
            )
        if self.importance is not None:
            check_unit("importance", self.importance)
        check_unit("trust", self.trust)
        check_line("role", self.role, ROLE_LENGTH)
        check_line("source", self.source, SOURCE_LENGTH)

    def appraised_importance(self, lists: WordLists) -> float:
        """Return the item's importance, appraised by the word lists where none is given."""
        if self.importance is not None:
            return self.importance
        role = appraised_role(role=self.role, source=self.source)
        return appraise(self.content, role=role, type=MemoryType.EPISODIC, lists=lists).importance


def word_share_weights(text: str) -> dict[int, float]:
    """Return a query's vector, whose product with an item's stored vector is the share of the query's words in the item, 0 to 1.

    All words have the same weight, because a buffer is too small for statistics.
    """
    positions = {term.index for term in query_terms(text)} - {0}
    return {position: 1 / (MAX_TERM_WEIGHT * len(positions)) for position in positions}
