"""The request of a recall, and its query parsed once: words, speaker and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from arbor.clock import check_time_zone
from arbor.embedding.models import EmbeddingModel
from arbor.errors import Invalid
from arbor.memory.content import check_text
from arbor.memory.recall.timespan import TimeSpan, mentioned_span
from arbor.memory.text.lexical import named_speakers, query_terms, query_vector, words_of
from arbor.memory.values import MemoryType

#: The most memories that one recall returns, and the longest query, in characters.
MAX_LIMIT = 200
QUERY_LENGTH = 4_000


@dataclass(frozen=True, kw_only=True)
class RecallFilter:
    """The conditions that a recalled memory meets; an empty field does not restrict. Raises Invalid for an impossible value."""

    types: frozenset[MemoryType] = frozenset()
    #: The time of the event: from `since` on, before `until`.
    since: datetime | None = None
    until: datetime | None = None
    session: str = ""
    without_session: str = ""
    #: With `without_session`: memories of that session from before this time are not left out.
    without_since: datetime | None = None
    #: From 0 to 1.
    min_importance: float = 0.0
    min_trust: float = 0.0
    #: A concept, by id or name, that the memory is a case of, directly or through a narrower one.
    concept: UUID | str | None = None
    episode: UUID | None = None
    #: A cluster that the memory belongs to: its id or its name, regardless of case.
    cluster: UUID | str | None = None

    def __post_init__(self) -> None:
        if wrong := sorted(str(memory_type) for memory_type in self.types if memory_type not in MemoryType):
            raise Invalid(f"types must be of {', '.join(MemoryType)}; got {', '.join(wrong)}")
        object.__setattr__(self, "types", frozenset(MemoryType(memory_type) for memory_type in self.types))
        for name, value in (("min_importance", self.min_importance), ("min_trust", self.min_trust)):
            if not 0 <= value <= 1:
                raise Invalid(f"{name} must be 0 to 1, got {value}")
        check_text("session", self.session)
        check_text("without_session", self.without_session)
        self._check_times()
        for name, named in (("concept", self.concept), ("cluster", self.cluster)):
            if isinstance(named, str):
                check_text(f"a {name}", named)
                if not named.strip():
                    raise Invalid(f"a {name} is named by its id or its name, got {named!r}")

    def _check_times(self) -> None:
        for name in ("since", "until", "without_since"):
            check_time_zone(name, getattr(self, name))
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise Invalid(
                f"since must be before until, got {self.since.isoformat()} and {self.until.isoformat()}"
            )


#: The filter that accepts every memory.
EVERYTHING = RecallFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimit:
    """The most memories of one session in a recall; other memories fill the rest of the recall's limit. Raises Invalid."""

    session: str
    #: From 1 on.
    most: int

    def __post_init__(self) -> None:
        check_text("session", self.session)
        if not self.session or self.most < 1:
            raise Invalid(
                f"a session limit names a session and is at least 1, got {self.session!r}, {self.most}"
            )

    def excess(self, count: int) -> int:
        """Return the number of memories beyond the limit, of `count` memories of the session."""
        return max(0, count - self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """One recall of one agent. Raises Invalid for a request that cannot be answered."""

    agent_id: UUID
    text: str
    #: From 1 to MAX_LIMIT.
    limit: int = 10
    #: The time of the recall, with a time zone; memories that expired before it are not recalled.
    now: datetime = field(default_factory=partial(datetime.now, UTC))
    #: The embedding of the query's meaning text; None: words alone decide.
    vector: Sequence[float] | None = None
    #: The model of the vector. Where the agent's vectors are of another model by now, words alone decide.
    model: EmbeddingModel | None = None
    only: RecallFilter = EVERYTHING
    session_limit: SessionLimit | None = None
    #: The valence of the agent's mood, -1 to 1; None: the mood does not bias the recall.
    mood: float | None = None

    def __post_init__(self) -> None:
        check_query(self.text, self.limit, self.mood)


def check_query(text: str, limit: int, mood: float | None = None) -> None:
    """Raise Invalid for a query that cannot be answered."""
    check_query_text(text)
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"a recall returns 1 to {MAX_LIMIT} memories, asked for {limit}")
    if mood is not None and not -1 <= mood <= 1:
        raise Invalid(f"a mood is a number from -1 to 1, got {mood}")


def check_query_text(text: str) -> None:
    """Raise Invalid for the text of a query that cannot be answered."""
    if not text.strip() or len(text) > QUERY_LENGTH:
        raise Invalid(f"a query is 1 to {QUERY_LENGTH} characters, not white space alone, got {len(text)}")
    check_text("a query", text)


@dataclass(frozen=True, kw_only=True)
class ReadQuery:
    """A parsed query: the inputs of the scan and the ranker."""

    #: The query's vector for BM25; its product with a stored vector is from 0 to 1.
    lexical: Mapping[int, float]
    #: The words of the query that name speakers of the agent's memories.
    speakers: frozenset[str]
    #: The time that the query mentions.
    span: TimeSpan | None


def read_query(text: str, *, df: Mapping[int, int], documents: int, now: datetime) -> ReadQuery:
    """Parse a query; `df` are the document frequencies of `lexical.counted_indices`, `documents` the number of memories."""
    terms = query_terms(text)
    speakers = named_speakers(terms, df)
    return ReadQuery(
        lexical=query_vector(terms, df, documents),
        speakers=speakers,
        span=mentioned_span(text, now=now),
    )


def meaning_text(text: str, df: Mapping[int, int]) -> str:
    """Return the part of a query to embed: the text without the names of speakers, if other words are left.

    The score has a component for speakers, and a name distorts the vector of a few words (docs/explanation/recall.md:
    recall@10 of vectors alone is .31 with names, .59 without).
    """
    names = named_speakers(query_terms(text), df)
    words = text.split()
    if names:
        words = [word for word in words if names.isdisjoint(words_of(word))]
    remaining = " ".join(words)
    return remaining if any(words_of(remaining)) else text
