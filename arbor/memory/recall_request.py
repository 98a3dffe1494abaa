"""The request of a recall: the agent, the query, and the other inputs of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from arbor.embedding.models import EmbeddingModel
from arbor.errors import Invalid
from arbor.memory.filters import EVERYTHING, RecallFilter

#: The most memories one recall returns, and the longest query it reads, in characters.
MAX_LIMIT = 200
QUERY_LENGTH = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """One recall of one agent. Raises Invalid for a request that cannot be answered."""

    agent_id: UUID
    text: str
    #: From 1 to MAX_LIMIT.
    limit: int = 10
    #: With a time zone: what has expired by then is not recalled.
    now: datetime = field(default_factory=partial(datetime.now, UTC))
    #: The embedding of the query's meaning text; None: words alone decide.
    vector: Sequence[float] | None = None
    #: The model that made the vector. Where the agent's vectors are of another one by now, words alone decide.
    model: EmbeddingModel | None = None
    only: RecallFilter = EVERYTHING
    #: How the agent feels, -1 to 1, if that is to colour what it recalls.
    mood: float | None = None

    def __post_init__(self) -> None:
        check_query(self.text, self.limit, self.mood)


def check_query(text: str, limit: int, mood: float | None = None) -> None:
    """Raise Invalid for a query that cannot be answered."""
    if not text.strip() or len(text) > QUERY_LENGTH or "\0" in text:
        raise Invalid(
            f"a query is 1 to {QUERY_LENGTH} characters without NUL, not white space alone, got {len(text)}"
        )
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"a recall returns 1 to {MAX_LIMIT} memories, asked for {limit}")
    if mood is not None and not -1 <= mood <= 1:
        raise Invalid(f"a mood is a number from -1 to 1, got {mood}")
