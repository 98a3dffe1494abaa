"""Embed texts in this process by a package's weights, without network, key or GPU."""

from __future__ import annotations

import importlib
import importlib.util
import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arbor.embedding.ports import unit_rows
from arbor.errors import EmbeddingFailed

#: The weights' own dimension, and the shorter ones that they were trained to be cut to (Kusupati et al. 2022,
#: "Matryoshka Representation Learning": the first places carry most of the meaning).
DIMENSION = 256
DIMENSIONS = (64, 128, DIMENSION)
_CONFIG = "l2_supercat"
#: Characters per batch. A character is at most one token and a token 1 KB of floats, so a batch needs at most 64 MB.
_POOLED_CHARACTERS = 65_536

_loading = threading.Lock()


class WordLlamaEmbedder:
    """Embeds a text as the mean of its token vectors, about 10,000 short texts a second.

    The weights are loaded at the first call, once per process (0.4 s, 60 MB); threads share them.
    """

    in_process = True

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.model = f"wordllama/{_CONFIG}_{dimension}"
        self.dimension = dimension

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Embed texts: shape (len(texts), dimension), each row of length 1.

        Raises EmbeddingFailed for a text without any token, or when the package's weights are missing.
        """
        with _loading:  # lru_cache alone would let two threads load at once
            llama = _load()
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start, some in _batches(texts):
            rows[start : start + len(some)] = _pool(llama, some)[:, : self.dimension]
        return unit_rows(rows, count=len(texts), dimension=self.dimension, model=self.model)


@dataclass(frozen=True, kw_only=True)
class _StaticModel:
    """A tokenizer, and the vector of each of its tokens."""

    tokenizer: Any
    #: Shape (tokens, DIMENSION).
    embedding: npt.NDArray[np.float32]


@lru_cache(maxsize=1)
def _load() -> _StaticModel:
    """Read the two files of the package wordllama; none of its code runs."""
    # Tokenizers' own threads would outlive a fork and warn about it; one thread is as fast on short texts.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        spec = importlib.util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ImportError("it is not installed")
        folder = Path(spec.origin).parent
        # Imported here: most processes never embed.
        tokenizers = importlib.import_module("tokenizers")
        safetensors = importlib.import_module("safetensors.numpy")
        tokenizer = folder / "tokenizers" / f"{_CONFIG}_tokenizer_config.json"
        weights = safetensors.load_file(folder / "weights" / f"{_CONFIG}_{DIMENSION}.safetensors")
        # No padding is set: a batch with one text of 64 KB would be padded to a gigabyte.
        return _StaticModel(
            tokenizer=tokenizers.Tokenizer.from_str(tokenizer.read_text(encoding="utf-8")),
            embedding=np.ascontiguousarray(weights["embedding.weight"], dtype=np.float32),
        )
    except (ImportError, OSError) as exc:
        raise EmbeddingFailed(f"the package wordllama has no usable weights: {exc}") from exc


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the texts in batches of limited size, each with the position of its first text."""
    start, size = 0, 0
    for end, text in enumerate(texts):
        if size and size + len(text) > _POOLED_CHARACTERS:
            yield start, list(texts[start:end])
            start, size = end, 0
        size += len(text)
    if start < len(texts):
        yield start, list(texts[start:])


def _pool(llama: _StaticModel, texts: list[str]) -> npt.NDArray[np.float32]:
    """Return the sum of each text's token vectors; only its direction matters."""
    try:
        encoded = llama.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    except (TypeError, ValueError) as exc:
        raise EmbeddingFailed("the text is not valid Unicode (half a surrogate pair?)") from exc
    pooled = np.empty((len(texts), llama.embedding.shape[1]), dtype=np.float32)
    # One text after the other: its tokens' vectors stay in the processor's cache, which is eight times as fast.
    for row, encoding in zip(pooled, encoded, strict=True):
        np.add.reduce(llama.embedding[np.asarray(encoding.ids, dtype=np.int64)], axis=0, out=row)
    if empty := [number for number, encoding in enumerate(encoded, start=1) if not encoding.ids]:
        raise EmbeddingFailed(f"text {empty[0]} of {len(texts)} has nothing to embed")
    return pooled
