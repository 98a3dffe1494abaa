"""The columns of memories that a mind image is made from, names as numbers, and the snapshot of the read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from arbor.embedding.ports import Vectors
from arbor.memory.recall.candidates import Flags, Numbers, Places

#: The number of the empty name: no session, no role.
UNNAMED = 0

#: Ids in two halves, as (n, 2).
type Halves = npt.NDArray[np.uint64]
#: Array columns with one value for each memory.
_ROW_COLUMNS = (
    "ids",
    "active",
    "position",
    "occurred",
    "expires",
    "importance",
    "decay_rate",
    "trust",
    "valence",
    "asks",
    "episode",
    "embedded",
    "term_counts",
)
#: Later than every moment.
NEVER = int(np.iinfo(np.int64).max)


class Names:
    """Texts by number and numbers by text; numbers never change."""

    def __init__(self, texts: Sequence[str] = ("",)) -> None:
        self._texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self._texts)}

    def copy(self) -> Names:
        """Return names to which others can be added."""
        return Names(self._texts)

    def numbers_of(self, texts: Sequence[str]) -> list[int]:
        """Return the number of each text, a new one for a new text."""
        for text in dict.fromkeys(texts):
            if text not in self._numbers:
                self._numbers[text] = len(self._texts)
                self._texts.append(text)
        return list(map(self._numbers.__getitem__, texts))

    def number_of(self, text: str) -> int | None:
        """Return the number of a text; None for one that does not occur."""
        return self._numbers.get(text)

    def texts_of(self, numbers: Sequence[int]) -> list[str]:
        """Return the text of each number."""
        return list(map(self._texts.__getitem__, numbers))

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return sum(map(sys.getsizeof, self._texts)) + 100 * len(self._texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot by the numbers of transactions, as PostgreSQL's `pg_snapshot` has it."""

    #: Every transaction with a lower number had ended; no transaction from `until` on had.
    since: int
    until: int
    #: Numbers of transactions between `since` and `until` that had not ended.
    running: tuple[int, ...]

    @classmethod
    def parse(cls, text: str, *, own: int | None) -> Self:
        """Read `since:until:running,running`. `own` is the reader's own transaction, which had not ended either."""
        since, until, running = text.split(":")
        numbers = {int(number) for number in running.split(",") if number}
        if own is not None:
            numbers.add(own)
        return cls(
            since=min(int(since), *numbers) if numbers else int(since),
            until=int(until),
            running=tuple(sorted(numbers)),
        )

    def includes(self, revision: int) -> bool:
        """Return whether the writes of a transaction were visible, if it was not rolled back."""
        return revision < self.since or (revision < self.until and revision not in self.running)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRows:
    """Memories of one agent, each once: one column for each property, all of the same length unless said otherwise."""

    #: The two halves of each id, as (n, 2).
    ids: Halves
    #: False for archived memories, of which only the id is used.
    active: Flags
    session: Sequence[str]
    role: Sequence[str]
    type: Sequence[str]
    position: Places
    #: Microseconds since EPOCH; NEVER where a memory does not expire.
    occurred: Places
    expires: Places
    importance: Numbers
    decay_rate: Numbers
    trust: Numbers
    valence: Numbers
    #: Whether the text has a question mark.
    asks: Flags
    #: The two halves of the episode's id, both 0 for memories without an episode.
    episode: Halves
    embedded: Flags
    #: The vectors of the embedded memories, in their order: (number embedded, dimension).
    vectors: Vectors
    #: The number of terms of each memory; then the terms of all memories, one memory after the other, and their weights.
    term_counts: Places
    terms: npt.NDArray[np.int32]
    weights: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.active)

    def at(self, places: Places) -> Self:
        """Return the memories in these places, which are distinct and ascending."""
        if len(places) == len(self):
            return self
        chosen = np.zeros(len(self), dtype=np.bool_)
        chosen[places] = True
        terms = np.repeat(chosen, self.term_counts)
        numbers = places.tolist()
        return replace(
            self,
            session=[self.session[number] for number in numbers],
            role=[self.role[number] for number in numbers],
            type=[self.type[number] for number in numbers],
            vectors=self.vectors[chosen[self.embedded]],
            terms=self.terms[terms],
            weights=self.weights[terms],
            **{name: getattr(self, name)[places] for name in _ROW_COLUMNS},
        )


def _no_rows() -> MemoryRows:
    ids: Halves = np.empty((0, 2), dtype=np.uint64)
    flags: Flags = np.empty(0, dtype=np.bool_)
    places: Places = np.empty(0, dtype=np.int64)
    numbers: Numbers = np.empty(0, dtype=np.float64)
    return MemoryRows(
        ids=ids,
        active=flags,
        session=(),
        role=(),
        type=(),
        position=places,
        occurred=places,
        expires=places,
        importance=numbers,
        decay_rate=numbers,
        trust=numbers,
        valence=numbers,
        asks=flags,
        episode=ids,
        embedded=flags,
        vectors=np.empty((0, 0), dtype=np.float32),
        term_counts=places,
        terms=np.empty(0, dtype=np.int32),
        weights=np.empty(0, dtype=np.float32),
    )


NO_ROWS = _no_rows()
