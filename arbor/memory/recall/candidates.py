"""The candidates of a recall as columns, which the ranker reads hundreds at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Self
from uuid import UUID

import numpy as np
import numpy.typing as npt

from arbor.memory.values import HEARTBEATS_SESSION

type Numbers = npt.NDArray[np.float64]
type Places = npt.NDArray[np.int64]
type Flags = npt.NDArray[np.bool_]

#: The origin of times in microseconds.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The distance between the keys of the first turns of two sessions, so that no turn is beside a turn of another session.
SESSION_ROOM = 1 << 33
_MICROSECOND = timedelta(microseconds=1)


class Candidate(NamedTuple):
    """One memory that may be recalled, or a neighbor of such a memory."""

    id: UUID
    #: The inner product of `ReadQuery.lexical` with the stored vector, 0 to 1.
    words: float
    #: The cosine with the query's embedding; None while the memory is not embedded.
    similarity: float | None
    #: Empty for a memory without a session, which has no neighbors in time.
    session: str
    position: int
    role: str
    #: Whether the text contains a question mark.
    asks: bool
    occurred_at: datetime
    last_access_at: datetime | None
    importance: float
    decay_rate: float
    trust: float
    #: Recalls by the agent and reinforcements.
    uses: int = 0
    #: None for a memory without an episode.
    episode: UUID | None = None
    #: The activation, 0 to 1.
    level: float = 0.0
    #: The emotional valence, from -1, bad, to 1, good.
    valence: float = 0.0


def _numbers(values: Sequence[float]) -> Numbers:
    return np.array(values, dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Distinct memories that may be recalled: one column for each property, all of the same length."""

    #: The two halves of each id, as (n, 2) unsigned 64-bit integers, which sort like the ids.
    ids: npt.NDArray[np.uint64]
    words: Numbers
    #: NaN while the memory is not embedded.
    similarity: Numbers
    #: A number for each session, from 0; -1 for no session, or for the session of heartbeats, which is no context (`session_numbers`).
    session: Places
    position: Places
    role: Sequence[str]
    asks: Flags
    #: The times of the event and of the last recall (or of the event, without one), in microseconds since EPOCH.
    occurred: Places
    used: Places
    importance: Numbers
    decay_rate: Numbers
    trust: Numbers
    uses: Numbers
    #: A number for each episode, from 0; -1: none.
    episode: Places
    level: Numbers
    valence: Numbers

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def of(cls, rows: Sequence[Candidate]) -> Self:
        """Return the columns of these rows."""
        occurred = [microseconds(row.occurred_at) for row in rows]
        used = [
            at if row.last_access_at is None else microseconds(row.last_access_at)
            for row, at in zip(rows, occurred, strict=True)
        ]
        return cls(
            ids=id_halves([row.id for row in rows]),
            words=_numbers([row.words for row in rows]),
            similarity=_numbers([np.nan if row.similarity is None else row.similarity for row in rows]),
            session=session_numbers([row.session for row in rows]),
            position=np.array([row.position for row in rows], dtype=np.int64),
            role=[row.role for row in rows],
            asks=np.array([row.asks for row in rows], dtype=np.bool_),
            occurred=np.array(occurred, dtype=np.int64),
            used=np.array(used, dtype=np.int64),
            importance=_numbers([row.importance for row in rows]),
            decay_rate=_numbers([row.decay_rate for row in rows]),
            trust=_numbers([row.trust for row in rows]),
            uses=_numbers([row.uses for row in rows]),
            episode=session_numbers([str(row.episode or "") for row in rows]),
            level=_numbers([row.level for row in rows]),
            valence=_numbers([row.valence for row in rows]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The associations between candidates along their neighborhoods: one entry for each, columns of the same length."""

    #: Source and target of the association, as positions among the candidates.
    source: Places
    target: Places
    #: The share of the source's fit that the target gets, 0 to 1.
    share: Numbers

    @classmethod
    def of(cls, associations: Sequence[tuple[int, int, float]]) -> Self:
        """Return the columns of these (source, target, share)."""
        return cls(
            source=np.array([association[0] for association in associations], dtype=np.int64),
            target=np.array([association[1] for association in associations], dtype=np.int64),
            share=_numbers([association[2] for association in associations]),
        )


NO_LINKS = Links.of([])


def id_halves(ids: Sequence[UUID]) -> npt.NDArray[np.uint64]:
    """Return ids as (n, 2) integers."""
    return (
        np.frombuffer(b"".join(memory_id.bytes for memory_id in ids), ">u8").reshape(-1, 2).astype(np.uint64)
    )


def ids_of_halves(ids: npt.NDArray[np.uint64]) -> list[UUID]:
    """Return the ids of the given halves."""
    data = ids.astype(">u8").tobytes()
    return [UUID(bytes=data[start : start + 16]) for start in range(0, len(data), 16)]


def session_numbers(sessions: Sequence[str]) -> Places:
    """Return a number for each session, equal for equal names; -1 for no session, and for an agent's heartbeats."""
    numbers = dict.fromkeys(("", HEARTBEATS_SESSION), -1)
    return np.array([numbers.setdefault(session, len(numbers) - 2) for session in sessions], dtype=np.int64)


def id_numbers(ids: npt.NDArray[np.uint64]) -> Places:
    """Return a number for each id, given in halves, equal for equal ids; -1 for the id of zeros."""
    present = ids.any(axis=1)
    if not present.any():
        return np.full(len(ids), -1, dtype=np.int64)
    _, numbers = np.unique(ids, axis=0, return_inverse=True)
    return np.where(present, numbers.reshape(-1), -1)


def microseconds(moment: datetime) -> int:
    """Return a moment as microseconds since EPOCH."""
    return (moment - EPOCH) // _MICROSECOND


def moment(count: int) -> datetime:
    """Return the moment `count` microseconds after EPOCH."""
    return EPOCH + int(count) * _MICROSECOND
