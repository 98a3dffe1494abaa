"""Postings: for each term, the memories that have the term, and its weight in each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from arbor.memory.candidates import Flags, Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """Columns of the same length, in the order of the terms."""

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

        Each product and each sum is rounded to single precision, in the order of the terms: as the database does it.
        """
        wanted = np.array(sorted(query) if len(self.terms) else (), dtype=np.int32)
        starts = self.terms.searchsorted(wanted)
        ends = self.terms.searchsorted(wanted, side="right")
        for term, start, end in zip(wanted.tolist(), starts.tolist(), ends.tolist(), strict=True):
            if start < end:
                # A row has a term once.
                scores[self.rows[start:end]] += self.weights[start:end] * np.float32(query[term])

    def counts(self, terms: Collection[int]) -> Places:
        """Return in how many rows each term occurs."""
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
        """Return both together."""
        return self.of(
            np.concatenate([self.terms, other.terms]),
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.weights, other.weights]),
        )

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self.terms.nbytes + self.rows.nbytes + self.weights.nbytes
