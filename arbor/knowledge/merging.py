"""Results of an agent's four sources, merged and ranked by one score (seed 001, "Result Merging")."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum

from arbor.errors import ConfigurationInvalid
from arbor.memory.content import content_hash
from arbor.memory.text.lexical import query_terms, term_index, term_of, words_of
from arbor.memory.values import DEFAULT_IMPORTANCE
from arbor.setting_lists import parse_weights_of

#: The actions of heartbeats that search.
SEARCH_MY_MEMORIES = "search_my_memories"
SEARCH_KNOWLEDGE = "search_knowledge"
#: The results that a prompt shows.
MAX_RESULTS = 5
#: The age at which recency is a half.
RECENCY_HALF_LIFE = timedelta(days=30)
#: The cosine that results of sources with vectors have at least (seed 001, "Debugging Memory Issues").
MIN_SIMILARITY = 0.7
#: The same for embedders in whose vectors texts about one subject have lower cosines: wordllama gives 0.4 to 0.6 to a question
#: and its answer, headings lower it, and unrelated texts are below 0.18.
MIN_SIMILARITIES: dict[str, float] = {"wordllama": 0.2}


class SearchSource(StrEnum):
    """The sources that a search of an agent's memories reads."""

    #: The agent's own memories, by their vectors.
    MEMORY = "agent_memory"
    #: What was done in the tenant, by the messages of the audit log.
    AUDIT = "audit_log"
    #: Outputs of completed steps of workflows.
    WORKFLOW = "workflow_steps"
    #: Passages of documents, by their vectors.
    KNOWLEDGE = "kb"


#: The sources in notes for prompts and people.
_SUBJECTS: dict[SearchSource, str] = {
    SearchSource.MEMORY: "memories were",
    SearchSource.AUDIT: "the audit log was",
    SearchSource.WORKFLOW: "workflow steps were",
    SearchSource.KNOWLEDGE: "documents were",
}

#: Seed 001: agent_memory > audit_log > workflow_steps > KB.
PRIORITIES: dict[SearchSource, float] = {
    SearchSource.MEMORY: 1.0,
    SearchSource.AUDIT: 0.8,
    SearchSource.WORKFLOW: 0.6,
    SearchSource.KNOWLEDGE: 0.5,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeWeights:
    """The weights of the score components of a result, 0 to 1. Raises ConfigurationInvalid."""

    similarity: float = 0.5
    recency: float = 0.2
    importance: float = 0.2
    source_priority: float = 0.1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value <= 1:
                raise ConfigurationInvalid(
                    f"ARBOR_SEARCH_WEIGHTS: the weight of {field.name} must be 0 to 1, got {value:g}"
                )


DEFAULT_WEIGHTS = MergeWeights()


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceResult:
    """One result of a source, with its score components."""

    source: SearchSource
    #: The id of the memory, audited act, step or passage.
    id: str
    #: The text that is shown, and by whose hash duplicates are found.
    content: str
    #: Its place: the document with version and place, the workflow with its step, the act with its actor; empty for a memory.
    citation: str = ""
    at: datetime
    #: The cosine with the query where the source has vectors; else the share of the query's words in the text (`word_share`).
    similarity: float
    #: 0 to 1; sources without importances have the middle.
    importance: float = DEFAULT_IMPORTANCE
    #: Set by `merge`.
    recency: float = 0.0
    score: float = 0.0

    @property
    def source_priority(self) -> float:
        """Return the priority of its source."""
        return PRIORITIES[self.source]


class Shortfall(StrEnum):
    """The part of a source that a search lacked."""

    #: All of its results.
    NOT_SEARCHED = "not searched"
    #: Results that are near in meaning and share no word with the query.
    WORDS_ALONE = "searched by words alone"
    #: Some of the nearest results: the approximate index was read, and the exact scan did not end.
    APPROXIMATE = "searched approximately"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFault:
    """A source that was not searched, or not wholly, and why."""

    source: SearchSource
    reason: str
    shortfall: Shortfall = Shortfall.NOT_SEARCHED

    def __str__(self) -> str:
        """Format the fault for prompts and people."""
        return f"{_SUBJECTS[self.source]} {self.shortfall.value}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemorySearch:
    """The results of a search, the best first, and the sources that it lacked."""

    results: Sequence[SourceResult]
    #: The term by which the audit log and workflows were searched.
    term: str
    #: Sources that failed, were too slow, or were searched in part.
    faults: Sequence[SourceFault] = ()
    #: Sources that the agent may not read.
    forbidden: Sequence[SearchSource] = ()

    @property
    def notes(self) -> list[str]:
        """Return the faults in words."""
        return [str(fault) for fault in self.faults]


def merge(
    results: Iterable[SourceResult],
    *,
    now: datetime,
    limit: int = MAX_RESULTS,
    weights: MergeWeights = DEFAULT_WEIGHTS,
    half_life: timedelta = RECENCY_HALF_LIFE,
) -> list[SourceResult]:
    """Return the best results of all sources, each text once with its highest score, the best first.

    Equal scores are ordered by source priority, then by id.
    """
    scored = [_scored(result, now, weights, half_life) for result in results]
    scored.sort(key=lambda result: (-result.score, -result.source_priority, result.id))
    best: dict[bytes, SourceResult] = {}
    for result in scored:
        best.setdefault(content_hash(result.content), result)
    return list(best.values())[:limit]


def _scored(result: SourceResult, now: datetime, weights: MergeWeights, half_life: timedelta) -> SourceResult:
    recency = recency_of(result.at, now=now, half_life=half_life)
    score = (
        weights.similarity * result.similarity
        + weights.recency * recency
        + weights.importance * result.importance
        + weights.source_priority * result.source_priority
    )
    return replace(result, recency=recency, score=score)


def recency_of(at: datetime, *, now: datetime, half_life: timedelta = RECENCY_HALF_LIFE) -> float:
    """Return 1 for now, halved with each half-life of age; a time in the future is as recent as now."""
    half_lives = max(timedelta(0), now - at) / half_life
    return math.exp2(-half_lives)


def min_similarity_of(model: str, *, chosen: float | None = None) -> float:
    """Return the least cosine of results, by the name of the embedder unless the installation chose one."""
    return MIN_SIMILARITIES.get(model, MIN_SIMILARITY) if chosen is None else chosen


def parse_min_similarity(text: str) -> float | None:
    """Parse the installation's least cosine; None for an empty text. Raises ConfigurationInvalid."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -1 <= value <= 1:
        raise ConfigurationInvalid(
            f"ARBOR_SEARCH_MIN_SIMILARITY must be a number from -1 to 1, or empty, got {text!r}"
        )
    return value


def word_share(query: str, text: str) -> float:
    """Return the share of the query's words that occur in a text, 0 to 1, inflected or not."""
    wanted = {term.index for term in query_terms(query) if term.index}
    if not wanted:
        return 1.0 if query.strip() and query.strip().casefold() in text.casefold() else 0.0
    present = {term_index(term_of(word)) for word in words_of(text)}
    return len(wanted & present) / len(wanted)


def parse_merge_weights(text: str) -> MergeWeights:
    """Parse weights such as `recency=0.4,similarity=0.3`; other weights have their defaults. Raises ConfigurationInvalid."""
    return parse_weights_of(text, setting="ARBOR_SEARCH_WEIGHTS", default=DEFAULT_WEIGHTS, highest=1)
