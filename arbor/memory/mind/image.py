"""The image of an agent's mind: all active memories as columns, brought up to date row by row.

An image is a value: an update makes another image, which shares the large arrays. Removed rows stay, marked inactive; new rows
are appended, with their vectors and postings in blocks of their own until a merge is due.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from arbor.embedding.ports import Vectors
from arbor.memory.mind.lookup import IdLookup, Postings, TurnLookup
from arbor.memory.mind.rows import NO_ROWS, Halves, MemoryRows, Names
from arbor.memory.recall.candidates import Flags, Numbers, Places

#: One memory without its vector and its words; session, role and type are numbers of `Names`.
ROW = np.dtype(
    [
        ("high", np.uint64),
        ("low", np.uint64),
        ("occurred", np.int64),
        ("expires", np.int64),
        ("importance", np.float64),
        ("decay_rate", np.float64),
        ("trust", np.float64),
        ("valence", np.float64),
        ("episode_high", np.uint64),
        ("episode_low", np.uint64),
        ("position", np.int32),
        ("session", np.int32),
        ("role", np.int32),
        ("type", np.int32),
        ("asks", np.bool_),
    ],
    align=True,
)
#: The most rows of an image with a single block: to copy it takes less time than to search two.
_ONE_BLOCK = 64
#: New rows are merged with the others when there are more of them than this number, and than this share of all rows.
_MIN_MERGED = 256
_MERGED_SHARE = 1 / 8
#: Lanes in which the database adds up an inner product of half-precision vectors.
_LANES = 8


@dataclass(frozen=True, kw_only=True)
class MindImage:
    """Memories of one agent, by row."""

    rows: npt.NDArray[np.void]
    active: Flags
    embedded: Flags
    names: Names
    #: The vectors of the rows as of the last merge, and of the rows appended since; zeros for a row without a vector.
    vectors: tuple[Vectors, Vectors]
    words: tuple[Postings, Postings]
    by_id: IdLookup
    turns: TurnLookup

    @classmethod
    def of(cls, memories: MemoryRows, *, dimension: int) -> Self:
        """Return the image of distinct memories. Raises ValueError for vectors of another dimension."""
        names = Names()
        rows = np.empty(len(memories), dtype=ROW)
        _fill(rows, memories, names)
        vectors = _vectors(memories, dimension)
        return cls(
            rows=rows,
            active=np.array(memories.active, dtype=np.bool_),
            embedded=np.array(memories.embedded, dtype=np.bool_),
            names=names,
            vectors=(vectors, vectors[:0]),
            words=(_postings(memories, 0), _postings(NO_ROWS, 0)),
            by_id=IdLookup.of(rows["high"], rows["low"]),
            turns=TurnLookup.of(rows["session"], rows["position"]),
        )

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def all_active(self) -> bool:
        """Return whether every row is active."""
        return bool(self.active.all())

    @cached_property
    def first_expiry(self) -> int:
        """The time of the first expiry, in microseconds since EPOCH; 0 for an empty image."""
        return int(self.expires.min()) if len(self) else 0

    @cached_property
    def expires(self) -> Places:
        """The expiry of each row, contiguous in memory, because filters read one column of all rows."""
        return np.ascontiguousarray(self.rows["expires"])

    @cached_property
    def occurred(self) -> Places:
        """The time of each row's event."""
        return np.ascontiguousarray(self.rows["occurred"])

    @cached_property
    def session(self) -> npt.NDArray[np.int32]:
        """The number of each row's session."""
        return np.ascontiguousarray(self.rows["session"])

    @cached_property
    def longest(self) -> float:
        """The length of the longest vector."""
        squares = [np.einsum("ij,ij->i", block, block).max(initial=0.0) for block in self.vectors]
        return float(np.sqrt(max(squares)))

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return int(self.vectors[0].shape[1])

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        large = (*self.vectors, *self.words, self.by_id, self.turns)
        columns = self.rows.nbytes + 30 * len(self)
        return columns + self.names.nbytes + sum(part.nbytes for part in large)

    def ids_of(self, rows: Places) -> Halves:
        """Return the ids of some rows, in halves."""
        ids = np.empty((len(rows), 2), dtype=np.uint64)
        ids[:, 0], ids[:, 1] = self.rows["high"][rows], self.rows["low"][rows]
        return ids

    def document_counts(self, terms: Collection[int]) -> dict[int, int]:
        """Return the number of rows that have each of these terms, removed rows included; terms without rows are missing."""
        counts = np.sum([postings.counts(terms) for postings in self.words], axis=0)
        return {term: count for term, count in zip(terms, counts.tolist(), strict=True) if count}

    def word_scores(self, query: dict[int, float]) -> npt.NDArray[np.float32]:
        """Return the inner product of each row's words with a query's."""
        scores = np.zeros(len(self), dtype=np.float32)
        for postings in self.words:
            postings.add_to(scores, query)
        return scores

    def similarities(self, vector: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the approximate cosine of each row with a query's vector; `similarity_error` bounds the error."""
        base, tail = self.vectors
        return base @ vector if not len(tail) else np.concatenate([base @ vector, tail @ vector])

    def similarity_error(self, vector: npt.NDArray[np.float32]) -> float:
        """Return the largest possible error of one of `similarities`: the bound of a sum in single precision."""
        return self.dimension * 2.0**-23 * self.longest * float(np.linalg.norm(vector))

    def exact_similarities(self, rows: Places, vector: npt.NDArray[np.float32]) -> Numbers:
        """Return the cosine of some rows with a query's vector, rounded as the database rounds; NaN without a vector.

        Products of half-precision numbers are exact in single precision, so only the order of the sum matters.
        """
        products = np.ascontiguousarray((self._vectors_of(rows) * vector).T)
        steps = len(vector) // _LANES
        # Along the first axis, numpy adds in order.
        lanes = np.add.reduce(products[: steps * _LANES].reshape(steps, _LANES, len(rows)), axis=0)
        total = np.zeros(len(rows), dtype=np.float32)
        for addend in (*lanes, *products[steps * _LANES :]):
            total += addend
        similarities = total.astype(np.float64)
        similarities[~self.embedded[rows]] = np.nan
        return similarities

    def _vectors_of(self, rows: Places) -> Vectors:
        base, tail = self.vectors
        if not len(tail):
            return base[rows]
        found = np.empty((len(rows), self.dimension), dtype=np.float32)
        old = rows < len(base)
        found[old] = base[rows[old]]
        found[~old] = tail[rows[~old] - len(base)]
        return found

    def with_changes(self, memories: MemoryRows) -> Self:
        """Return the image with these memories added or replaced, and removed where they are not active.

        Raises ValueError for vectors of another dimension.
        """
        if not len(memories):
            return self
        active = self.active.copy()
        known = self.by_id.rows_of(memories.ids, among=active)
        active[known[known >= 0]] = False
        added = memories.at(np.flatnonzero(memories.active))
        names = self.names.copy()
        first = len(self)
        # To copy arrays with fields is ten times as fast as to concatenate them.
        whole = np.empty(first + len(added), dtype=ROW)
        whole[:first] = self.rows
        rows = whole[first:]
        _fill(rows, added, names)
        vectors, words = [*self.vectors], [*self.words]
        block = 0 if first <= _ONE_BLOCK else 1
        vectors[block] = np.concatenate([vectors[block], _vectors(added, self.dimension)])
        words[block] = words[block].merged(_postings(added, first))
        grown = replace(
            self,
            rows=whole,
            active=np.concatenate([active, np.ones(len(rows), dtype=np.bool_)]),
            embedded=np.concatenate([self.embedded, added.embedded]),
            names=names,
            vectors=(vectors[0], vectors[1]),
            words=(words[0], words[1]),
            by_id=self.by_id.with_rows(rows["high"], rows["low"], first),
            turns=self.turns.with_rows(rows["session"], rows["position"], first),
        )
        return grown.merged() if grown.is_merge_due else grown

    @property
    def is_merge_due(self) -> bool:
        """Return whether enough rows were appended or removed for a merge."""
        most = max(_MIN_MERGED, int(len(self) * _MERGED_SHARE))
        return len(self.vectors[1]) > most or len(self) - int(self.active.sum()) > most

    def merged(self) -> Self:
        """Return the image without the removed rows, in one block."""
        present = self.active
        numbers = np.cumsum(present) - 1
        base, tail = self.vectors
        old, new = present[: len(base)], present[len(base) :]
        vectors = np.concatenate([base[old], tail[new]])
        rows = self.rows[present]
        words = self.words[0].among(present, numbers).merged(self.words[1].among(present, numbers))
        return replace(
            self,
            rows=rows,
            active=np.ones(len(rows), dtype=np.bool_),
            embedded=self.embedded[present],
            vectors=(vectors, vectors[:0]),
            words=(words, _postings(NO_ROWS, 0)),
            by_id=IdLookup.of(rows["high"], rows["low"]),
            turns=TurnLookup.of(rows["session"], rows["position"]),
        )


def _fill(rows: npt.NDArray[np.void], memories: MemoryRows, names: Names) -> None:
    rows["high"], rows["low"] = memories.ids[:, 0], memories.ids[:, 1]
    rows["episode_high"], rows["episode_low"] = memories.episode[:, 0], memories.episode[:, 1]
    for name in ("session", "role", "type"):
        rows[name] = names.numbers_of(getattr(memories, name))
    for name in ("occurred", "expires", "importance", "decay_rate", "trust", "valence", "position", "asks"):
        rows[name] = getattr(memories, name)


def _vectors(memories: MemoryRows, dimension: int) -> Vectors:
    if len(memories.vectors) and memories.vectors.shape[1] != dimension:
        raise ValueError(f"vectors must have {dimension} dimensions, got {memories.vectors.shape[1]}")
    if len(memories.vectors) == len(memories):
        return np.ascontiguousarray(memories.vectors, dtype=np.float32).reshape(len(memories), dimension)
    vectors = np.zeros((len(memories), dimension), dtype=np.float32)
    if len(memories.vectors):
        vectors[memories.embedded] = memories.vectors
    return vectors


def _postings(memories: MemoryRows, first: int) -> Postings:
    rows = np.repeat(np.arange(first, first + len(memories), dtype=np.int32), memories.term_counts)
    return Postings.of(memories.terms, rows, memories.weights)
