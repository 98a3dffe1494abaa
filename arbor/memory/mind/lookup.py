"""Find rows of a mind image by id, by place in a session, and by term."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from arbor.memory.mind.rows import UNNAMED, Halves
from arbor.memory.recall.candidates import SESSION_ROOM, Flags, Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """An inverted index of the terms of memories: columns of the same length, in the order of the terms."""

    terms: npt.NDArray[np.int32]
    rows: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]

    @classmethod
    def of(
        cls, terms: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], weights: npt.NDArray[np.float32]
    ) -> Self:
        """Return the postings of these terms in these rows."""
        order = np.argsort(terms, kind="stable")
        return cls(terms=terms[order], rows=rows[order], weights=weights[order])

    def add_to(self, scores: npt.NDArray[np.float32], query: Mapping[int, float]) -> None:
        """Add to each row's score the inner product with a query's terms.

        Each product and each sum is rounded to single precision, in the order of the terms, as the database does.
        """
        wanted = np.array(sorted(query) if len(self.terms) else (), dtype=np.int32)
        starts = self.terms.searchsorted(wanted)
        ends = self.terms.searchsorted(wanted, side="right")
        for term, start, end in zip(wanted.tolist(), starts.tolist(), ends.tolist(), strict=True):
            if start < end:
                # No row has a term twice, so the rows are distinct.
                scores[self.rows[start:end]] += self.weights[start:end] * np.float32(query[term])

    def counts(self, terms: Collection[int]) -> Places:
        """Return the number of rows that have each term."""
        wanted = np.fromiter(terms, dtype=np.int32, count=len(terms))
        return np.searchsorted(self.terms, wanted, side="right") - np.searchsorted(self.terms, wanted)

    def among(self, present: Flags, numbers: Places) -> Self:
        """Return the postings of the rows that are present, under new numbers."""
        chosen = present[self.rows]
        return type(self)(
            terms=self.terms[chosen],
            rows=numbers[self.rows[chosen]].astype(np.int32),
            weights=self.weights[chosen],
        )

    def merged(self, other: Self) -> Self:
        """Return postings with the entries of both."""
        return self.of(
            np.concatenate([self.terms, other.terms]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.weights, other.weights]),
        )

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.terms.nbytes + self.rows.nbytes + self.weights.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class IdLookup:
    """Rows in the order of the lower halves of their ids, which are seldom equal."""

    lows: npt.NDArray[np.uint64]
    highs: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, highs: npt.NDArray[np.uint64], lows: npt.NDArray[np.uint64]) -> Self:
        """Return the lookup of rows with these ids."""
        order = lows.argsort()
        return cls(lows=lows[order], highs=highs[order], rows=order)

    def with_rows(self, highs: npt.NDArray[np.uint64], lows: npt.NDArray[np.uint64], first: int) -> Self:
        """Return the lookup with more rows, numbered from `first`."""
        lows, highs = np.concatenate([self.lows, lows]), np.concatenate([self.highs, highs])
        rows = np.concatenate([self.rows, np.arange(first, first + len(lows) - len(self.lows))])
        # A stable sort is fast on a run that is sorted already.
        order = lows.argsort(kind="stable")
        return type(self)(lows=lows[order], highs=highs[order], rows=rows[order])

    def rows_of(self, ids: Halves, *, among: Flags) -> Places:
        """Return the row of each id, among the rows that `among` marks; -1 for an id without such a row."""
        found = np.full(len(ids), -1, dtype=np.int64)
        if not len(self.lows) or not len(ids):
            return found
        at = np.searchsorted(self.lows, ids[:, 1])
        # Where lower halves are equal, or an id had other rows before, the next places are searched too.
        looking = np.arange(len(ids))
        while len(looking):
            looking = looking[at[looking] < len(self.lows)]
            looking = looking[self.lows[at[looking]] == ids[looking, 1]]
            places = at[looking]
            rows = self.rows[places]
            same = (self.highs[places] == ids[looking, 0]) & among[rows]
            found[looking[same]] = rows[same]
            looking = looking[~same]
            at[looking] += 1
        return found

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.lows.nbytes + self.highs.nbytes + self.rows.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLookup:
    """The rows that belong to a session, in the order of their sessions and positions."""

    keys: Places
    rows: Places

    @classmethod
    def of(cls, session: npt.NDArray[np.int32], position: npt.NDArray[np.int32]) -> Self:
        """Return the lookup of rows in these sessions, at these positions."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(keys=nothing, rows=nothing).with_rows(session, position, 0)

    def with_rows(self, session: npt.NDArray[np.int32], position: npt.NDArray[np.int32], first: int) -> Self:
        """Return the lookup with more rows, numbered from `first`."""
        more = (session != UNNAMED).nonzero()[0]
        if not len(more):
            return self
        keys = np.concatenate([self.keys, turn_keys(session[more], position[more])])
        rows = np.concatenate([self.rows, more + first])
        order = keys.argsort(kind="stable")
        return type(self)(keys=keys[order], rows=rows[order])

    def rows_beside(
        self, keys: Places, *, reach: int, most: int, among: Flags | None, ids_of: Callable[[Places], Halves]
    ) -> Places:
        """Return the rows within `reach` positions of these turns, at most `most` for each turn, unordered.

        Stretches do not overlap: each begins where the one before it ends. Of too many rows, those with the lower positions are
        returned, and of one position those with the lower ids.
        """
        if not len(keys):
            return np.empty(0, dtype=np.int64)
        seeds = np.unique(keys)
        since = seeds - reach
        since[1:] = np.maximum(since[1:], seeds[:-1] + reach + 1)
        starts = self.keys.searchsorted(since)
        lengths = np.maximum(self.keys.searchsorted(seeds + reach, side="right") - starts, 0)
        stretch = np.arange(len(seeds)).repeat(lengths)
        firsts = lengths.cumsum() - lengths
        places = np.arange(len(stretch)) - (firsts - starts)[stretch]
        rows: Places = self.rows[places]
        if among is not None:
            passing = among[rows]
            rows, stretch, places = rows[passing], stretch[passing], places[passing]
        # There are more than `most` rows only if several memories have the same position.
        if len(rows) and lengths.max() > most:
            ids = ids_of(rows)
            # The stretches are in order already, and stay where they are.
            order = np.lexsort((ids[:, 1], ids[:, 0], self.keys[places], stretch))
            rank = np.arange(len(stretch)) - np.searchsorted(stretch, stretch)
            rows = rows[order][rank < most]
        return rows

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.keys.nbytes + self.rows.nbytes


def turn_keys(session: npt.NDArray[np.int32], position: npt.NDArray[np.int32]) -> Places:
    """Return a number for each turn; the numbers of two turns of one session differ as their positions do."""
    return session.astype(np.int64) * SESSION_ROOM + position
