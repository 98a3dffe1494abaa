"""Check the vectors that an embedder returned."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from arbor.errors import EmbeddingFailed


def unit_rows(vectors: Any, *, count: int, dimension: int, model: str) -> npt.NDArray[np.float32]:
    """Return the vectors as float32 rows of length 1, shape (count, dimension).

    Raises EmbeddingFailed when they are too many or too few, of another dimension, not finite, or without any
    direction: a zero vector is equally near to everything, and PostgreSQL answers NaN for it.
    """
    if count == 0:
        return np.zeros((0, dimension), dtype=np.float32)
    try:
        # A number beyond float32 becomes infinite, and is refused below.
        with np.errstate(over="ignore"):
            rows = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise EmbeddingFailed(f"{model} must give {count} vectors of numbers, all of one length") from exc
    if rows.ndim != 2 or len(rows) != count:
        raise EmbeddingFailed(f"{model} must give {count} vectors, got an array of shape {rows.shape}")
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
    unit: npt.NDArray[np.float32] = rows / lengths
    return unit
