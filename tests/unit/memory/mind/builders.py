"""Memories as rows, for tests of a mind image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np

from arbor.memory.mind.rows import NEVER, MemoryRows
from arbor.memory.recall.candidates import id_halves, microseconds

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
DIMENSION = 16


def rows(*memories: Mapping[str, Any]) -> MemoryRows:
    """Return rows with these properties; `id` is a number, `words` a mapping of terms, `vector` a list or None."""
    defaults: dict[str, Any] = {
        "active": True,
        "session": "",
        "role": "",
        "type": "episodic",
        "position": 0,
        "occurred": NOW - timedelta(days=1),
        "expires": None,
        "importance": 0.5,
        "decay_rate": 0.01,
        "trust": 1.0,
        "valence": 0.0,
        "asks": False,
        "episode": 0,
        "vector": None,
        "words": {},
    }
    full = [defaults | dict(memory) for memory in memories]
    vectors = [memory["vector"] for memory in full if memory["vector"] is not None]
    words = [sorted(memory["words"].items()) for memory in full]
    numbers = {
        name: np.array([memory[name] for memory in full], dtype=np.float64)
        for name in ("importance", "decay_rate", "trust", "valence")
    }
    return MemoryRows(
        ids=id_halves([UUID(int=memory["id"]) for memory in full]),
        active=flags([memory["active"] for memory in full]),
        session=[memory["session"] for memory in full],
        role=[memory["role"] for memory in full],
        type=[memory["type"] for memory in full],
        position=np.array([memory["position"] for memory in full], dtype=np.int64),
        occurred=np.array([microseconds(memory["occurred"]) for memory in full], dtype=np.int64),
        expires=np.array(
            [microseconds(memory["expires"]) if memory["expires"] else NEVER for memory in full],
            dtype=np.int64,
        ),
        asks=flags([memory["asks"] for memory in full]),
        episode=id_halves([UUID(int=memory["episode"]) for memory in full]),
        embedded=flags([memory["vector"] is not None for memory in full]),
        vectors=np.array(vectors, dtype=np.float16)
        .astype(np.float32)
        .reshape(len(vectors), len(vectors[0]) if vectors else 0),
        term_counts=np.array([len(pairs) for pairs in words], dtype=np.int64),
        terms=np.array([term for pairs in words for term, _ in pairs], dtype=np.int32),
        weights=np.array([weight for pairs in words for _, weight in pairs], dtype=np.float32),
        **numbers,
    )


def flags(values: Sequence[bool]) -> Any:
    """Return booleans as a NumPy column."""
    return np.array(values, dtype=np.bool_)


def vector(seed: int, dimension: int = DIMENSION) -> list[float]:
    """Return a vector of length 1."""
    drawn = np.random.default_rng(seed).standard_normal(dimension)
    return list((drawn / np.linalg.norm(drawn)).tolist())
