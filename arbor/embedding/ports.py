"""The port of embedders, with the fake that tests use, and the check of the vectors that they return."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from arbor.errors import EmbeddingFailed
from arbor.memory.text.lexical import words_of
from arbor.quotations import counted

#: Vectors of texts as rows, (n, dimension), or one vector.
type Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors whose inner product says how near their meanings are."""

    @property
    def model(self) -> str:
        """The name of the model; part of the cache's key, and stored with each memory."""
        ...

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        ...

    @property
    def in_process(self) -> bool:
        """Return whether this process computes the vectors without network, so that a transaction may be open."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, shape (len(texts), dimension), each of length 1. Raises EmbeddingFailed."""
        ...


class HashEmbedder:
    """A fake without a model: deterministic vectors, near each other for texts that share words."""

    in_process = True

    def __init__(self, dimension: int = 256) -> None:
        self.model = f"hash/{dimension}"
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the sum of each text's words, a fixed random direction for every word."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in [*words_of(text)] or [text]:
                row += self._direction(word)
        return unit_rows(rows, count=len(texts), dimension=self.dimension, model=self.model)

    def _direction(self, word: str) -> Vectors:
        seed = hashlib.blake2b(word.encode(errors="surrogatepass"), digest_size=8).digest()
        unscaled = np.random.default_rng(int.from_bytes(seed)).standard_normal(self.dimension)
        return unscaled.astype(np.float32)


def unit_rows(vectors: Any, *, count: int, dimension: int, model: str) -> Vectors:
    """Return the vectors as float32 rows of length 1, shape (count, dimension).

    Raises EmbeddingFailed for too many or too few vectors, another dimension, numbers that are not finite, and a vector
    without a direction: a zero vector is equally near to everything, and PostgreSQL answers NaN for it.
    """
    if count == 0:
        return np.zeros((0, dimension), dtype=np.float32)
    try:
        # A number beyond float32 becomes infinite, and is refused below.
        with np.errstate(over="ignore"):
            rows = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise EmbeddingFailed(
            f"{model} must give {counted(count, 'vector')} of numbers, all of one length"
        ) from exc
    if rows.ndim != 2 or len(rows) != count:
        raise EmbeddingFailed(
            f"{model} must give {counted(count, 'vector')}, got an array of shape {rows.shape}"
        )
    if rows.shape[1] != dimension:
        raise EmbeddingFailed(
            f"{model} gives vectors of {rows.shape[1]} numbers; this installation stores {dimension}"
        )
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths < np.finfo(np.float32).tiny))
    if len(bad):
        raise EmbeddingFailed(
            f"{model} gave a vector for text {bad[0] + 1} of {count} that is zero or not finite"
        )
    unit: Vectors = rows / lengths
    return unit
