"""Passages that a search found, ranked by two lists: nearness of meaning and shared words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

#: The constant of reciprocal rank fusion: Cormack, Clarke and Büttcher, 2009. It needs no scale, so it fits every embedder.
FUSION_CONSTANT = 60
#: Passages of each list that are ranked, and so the most that one search returns.
MAX_PASSAGES = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundPassage:
    """A passage with its citation and its scores."""

    id: UUID
    document_id: UUID
    #: The document's name and title, and the number of the version that is searched.
    name: str
    title: str
    version: int
    category: str
    #: The place in the document: page, headings, characters.
    place: str
    text: str
    #: The hash of the text, by which duplicates in other sources are found.
    content_hash: bytes
    written_at: datetime
    #: The cosine of its vector and the query's, -1 to 1; None where one of them is missing.
    similarity: float | None
    #: BM25 as a share of the most that the query's words could score, 0 to 1.
    words: float
    #: Set by `fuse`: above 0, and only comparable within one search.
    score: float = 0.0

    @property
    def citation(self) -> str:
        """Return the source for people and prompts: title, version and place."""
        return f"{self.title or self.name}, version {self.version}, {self.place}"


def fuse(found: Iterable[FoundPassage], *, limit: int, min_similarity: float) -> list[FoundPassage]:
    """Rank passages by reciprocal rank fusion of similarity and words, the best first.

    Passages below `min_similarity` remain if they have words of the query: a name or a number may mean nothing to an embedder.
    """
    passages = list(found)
    by_meaning = _ranks(
        [
            passage
            for passage in passages
            if passage.similarity is not None and passage.similarity >= min_similarity
        ],
        lambda passage: passage.similarity or 0.0,
    )
    by_words = _ranks([passage for passage in passages if passage.words > 0], lambda passage: passage.words)
    scored = [
        replace(passage, score=score)
        for passage in passages
        if (score := by_meaning.get(passage.id, 0.0) + by_words.get(passage.id, 0.0)) > 0
    ]
    scored.sort(key=lambda passage: (-passage.score, passage.id))
    return scored[:limit]


def _ranks(passages: Sequence[FoundPassage], value: Callable[[FoundPassage], float]) -> dict[UUID, float]:
    """Return the score of each passage by its rank in one list, for the MAX_PASSAGES best ones."""
    ordered = sorted(passages, key=lambda passage: (-value(passage), passage.id))[:MAX_PASSAGES]
    return {passage.id: 1 / (FUSION_CONSTANT + rank) for rank, passage in enumerate(ordered, start=1)}
