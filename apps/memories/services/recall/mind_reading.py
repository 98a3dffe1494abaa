"""Read a mind for its image: all of its active memories, or those that changed since a snapshot.

Revisions are numbers of transactions. A reader records which transactions its snapshot includes, and reads the next time what
all others wrote: no late commit is missed, and writers need not wait for each other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from apps.memories.services.recall import queries
from apps.memories.services.recall.packed_rows import (
    FLAG,
    FLOAT,
    ID,
    INTEGER,
    MOMENT,
    fetch_packed_rows,
    moments,
    unpack,
)
from apps.memories.services.store.term_counts import TermStatistics, term_statistics, terms_to_count
from apps.tenants.encoding import to_json
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.memory.mind.rows import NEVER, NO_ROWS, MemoryRows, Snapshot

_LAYOUT = np.dtype(
    [
        ("id", *ID),
        ("active", FLAG),
        ("position", INTEGER),
        ("occurred", MOMENT),
        ("expires", MOMENT),
        ("importance", FLOAT),
        ("decay_rate", FLOAT),
        ("trust", FLOAT),
        ("valence", FLOAT),
        ("asks", FLAG),
        ("episode", *ID),
        ("vector_bytes", INTEGER),
        ("words_bytes", INTEGER),
    ]
)
#: `timestamptz_send` of infinity.
_INFINITY = np.iinfo(np.int64).max
#: The header of a `sparsevec` on the wire, in numbers of 4 bytes: the dimension, the number of terms, and an unused number.
_WORDS_HEAD = 3
#: The header of a `halfvec` on the wire, in numbers of 2 bytes: the dimension, and an unused number.
_VECTOR_HEAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MindReading:
    """A mind as one statement read it, or its changes since a snapshot."""

    agent_id: UUID
    #: The last transaction that made all earlier readings unusable.
    revision: int
    model: EmbeddingModel
    snapshot: Snapshot
    #: The number of the reading transaction, None if it has written nothing, and whether it has written memories of this mind.
    own: int | None
    wrote_memories: bool
    #: The statistics of the requested terms.
    statistics: TermStatistics
    rows: MemoryRows


def read_minds(agent_ids: Collection[UUID]) -> list[MindReading]:
    """Read the whole minds of agents in the open transaction. One statement; an agent without a mind has no reading."""
    return _read(queries.WHOLE_MINDS, [{"agent_id": str(agent_id)} for agent_id in agent_ids])


def read_changes(
    snapshots: Mapping[UUID, Snapshot], terms: Mapping[UUID, Collection[int] | None]
) -> list[MindReading]:
    """Read the changes of agents' minds that their snapshots do not include, archived memories among them.

    Each reading has the statistics of the agent's `terms`. One statement in the open transaction; an agent without a mind
    has no reading.
    """
    return _read(
        queries.CHANGED_MINDS,
        [
            {
                "agent_id": str(agent_id),
                "since": snapshot.since,
                "until": snapshot.until,
                "running": snapshot.running,
                "terms": terms_to_count(terms.get(agent_id)),
            }
            for agent_id, snapshot in snapshots.items()
        ],
    )


def _read(statement: str, requests: list[dict[str, Any]]) -> list[MindReading]:
    if not requests:
        return []
    return [_reading(row) for row in fetch_packed_rows(statement, requests=to_json(requests))]


def _reading(row: tuple[Any, ...]) -> MindReading:
    (
        agent_id,
        revision,
        name,
        dimension,
        snapshot,
        own,
        wrote_memories,
        counts,
        data,
        vectors,
        words,
        *names,
    ) = row
    packed = unpack(data, _LAYOUT)
    model = EmbeddingModel(name=name, dimension=dimension)
    return MindReading(
        agent_id=agent_id,
        revision=revision,
        model=model,
        snapshot=Snapshot.parse(snapshot, own=own),
        own=own,
        wrote_memories=wrote_memories,
        statistics=term_statistics(map(tuple, counts or ()), model),
        rows=_memory_rows(packed, vectors, words, names) if len(packed) else NO_ROWS,
    )


def _memory_rows(packed: npt.NDArray[Any], vectors: Any, words: Any, names: list[Any]) -> MemoryRows:
    expires = packed["expires"].astype(np.int64)
    numbers = {
        name: packed[name].astype(np.float64) for name in ("importance", "decay_rate", "trust", "valence")
    }
    terms, weights = _words(words, packed["words_bytes"].astype(np.int64))
    session, role, type_ = names
    return MemoryRows(
        ids=packed["id"].astype(np.uint64),
        active=packed["active"],
        session=session,
        role=role,
        type=type_,
        position=packed["position"].astype(np.int64),
        occurred=moments(packed["occurred"]),
        expires=np.where(
            expires == _INFINITY, NEVER, moments(np.where(expires == _INFINITY, 0, packed["expires"]))
        ),
        asks=packed["asks"],
        episode=packed["episode"].astype(np.uint64),
        embedded=packed["vector_bytes"] > 0,
        vectors=_vectors(vectors, packed["vector_bytes"]),
        term_counts=np.maximum(packed["words_bytes"].astype(np.int64) // 4 - _WORDS_HEAD, 0) // 2,
        terms=terms,
        weights=weights,
        **numbers,
    )


def _vectors(data: Any, lengths: npt.NDArray[Any]) -> Vectors:
    """Decode vectors that `halfvec_send` wrote. Raises ValueError if they are not all of one dimension."""
    lengths = lengths[lengths > 0]
    if not len(lengths):
        return np.empty((0, 0), dtype=np.float32)
    if (lengths != lengths[0]).any():
        raise ValueError("the vectors of one mind must have the same dimension")
    numbers = np.frombuffer(data, ">u2").reshape(len(lengths), -1)[:, _VECTOR_HEAD:]
    return numbers.astype(np.uint16).view(np.float16).astype(np.float32)


def _words(
    data: Any, lengths: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Decode the terms and weights of all memories, one memory after the other, that `sparsevec_send` wrote."""
    numbers = np.frombuffer(data or b"", ">i4").astype(np.int32)
    counts = lengths[lengths > 0] // 4
    terms_each = (counts - _WORDS_HEAD) // 2
    firsts = np.cumsum(counts) - counts + _WORDS_HEAD
    within = np.arange(int(terms_each.sum())) - np.repeat(np.cumsum(terms_each) - terms_each, terms_each)
    places = np.repeat(firsts, terms_each) + within
    weights = numbers[places + np.repeat(terms_each, terms_each)].view(np.float32)
    # The database numbers terms from 1, and sends them from 0.
    return numbers[places] + 1, weights
