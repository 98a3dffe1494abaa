"""Embed texts in this process by a package's weights, without network, key or GPU."""

from __future__ import annotations

import importlib
import importlib.util
import json
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
#: Characters per batch, which bound its tokens in memory. Vectors are read for one text at a time, 1 KB per token: at most
#: 64 MB for a text of 64 KB, which has no more tokens than bytes.
_MAX_BATCH_CHARACTERS = 65_536

_loading = threading.Lock()


class WordLlamaEmbedder:
    """Embeds a text as the mean of its token vectors, about 10,000 short texts a second.

    The tokenizer is loaded at the first call, once per process (0.2 s, 32 MB); threads share it. Vectors are read from the
    package's file at the first use of their token.
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
        for start, batch in _batches(texts):
            rows[start : start + len(batch)] = _pool(llama, batch, first=start + 1)[:, : self.dimension]
        return unit_rows(rows, count=len(texts), dimension=self.dimension, model=self.model)


class _TokenVectors:
    """The vector of each token, in full precision from its first use on: a process meets a tenth of the vocabulary."""

    def __init__(self, stored: npt.NDArray[np.float16]) -> None:
        self._stored = stored
        # Pages of this array that are never written take no memory.
        self._vectors = np.empty(stored.shape, dtype=np.float32)
        self._converted = np.zeros(len(stored), dtype=np.bool_)

    @property
    def dimension(self) -> int:
        """The length of the vectors."""
        return int(self._stored.shape[1])

    def sum(self, tokens: npt.NDArray[np.int64], out: npt.NDArray[np.float32]) -> None:
        """Write the sum of these tokens' vectors to `out`, shape (dimension,)."""
        converted = self._converted[tokens]
        if not converted.all():
            # Threads that convert a vector at the same time write the same values.
            new = tokens[~converted]
            self._vectors[new] = self._stored[new]
            self._converted[new] = True
        np.add.reduce(self._vectors[tokens], axis=0, out=out)


@dataclass(frozen=True, kw_only=True)
class _StaticModel:
    """A tokenizer, and the vectors of its tokens."""

    tokenizer: Any
    vectors: _TokenVectors


@lru_cache(maxsize=1)
def _load() -> _StaticModel:
    """Open the two files of the package wordllama; none of its code runs."""
    # Tokenizers' own threads would outlive a fork and warn about it; one thread is as fast on short texts.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        spec = importlib.util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ImportError("it is not installed")
        folder = Path(spec.origin).parent
        # Imported here: most processes never embed.
        tokenizers = importlib.import_module("tokenizers")
        tokenizer = folder / "tokenizers" / f"{_CONFIG}_tokenizer_config.json"
        # No padding is set: a batch with one text of 64 KB would be padded to a gigabyte.
        return _StaticModel(
            tokenizer=tokenizers.Tokenizer.from_str(tokenizer.read_text(encoding="utf-8")),
            vectors=_TokenVectors(_map_tensor(folder / "weights" / f"{_CONFIG}_{DIMENSION}.safetensors")),
        )
    except (ImportError, OSError, ValueError, KeyError) as exc:
        raise EmbeddingFailed(f"the package wordllama has no usable weights: {exc}") from exc


def _map_tensor(path: Path) -> npt.NDArray[np.float16]:
    """Map the tensor of token vectors into memory, which all processes share.

    The format safetensors: the length of a JSON header in eight bytes, the header, then the tensors at its offsets.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        tensor = json.loads(file.read(length))["embedding.weight"]
    if tensor["dtype"] != "F16":
        raise ValueError(f"vectors of type {tensor['dtype']}, expected F16")
    start = 8 + length + tensor["data_offsets"][0]
    return np.memmap(path, dtype="<f2", mode="r", offset=start, shape=tuple(tensor["shape"]))


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the texts in batches of limited size, each with the position of its first text."""
    start, size = 0, 0
    for end, text in enumerate(texts):
        if size and size + len(text) > _MAX_BATCH_CHARACTERS:
            yield start, list(texts[start:end])
            start, size = end, 0
        size += len(text)
    if start < len(texts):
        yield start, list(texts[start:])


def _pool(llama: _StaticModel, texts: list[str], *, first: int) -> npt.NDArray[np.float32]:
    """Return the sum of each text's token vectors; only its direction matters. `first` is the number of the first text."""
    try:
        encoded = llama.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    except (TypeError, ValueError) as exc:
        raise EmbeddingFailed("the text is not valid Unicode (half a surrogate pair?)") from exc
    pooled = np.empty((len(texts), llama.vectors.dimension), dtype=np.float32)
    # One text after the other: its tokens' vectors stay in the processor's cache, which is eight times as fast.
    for row, encoding in zip(pooled, encoded, strict=True):
        llama.vectors.sum(np.asarray(encoding.ids, dtype=np.int64), out=row)
    if empty := [number for number, encoding in enumerate(encoded, start=first) if not encoding.ids]:
        raise EmbeddingFailed(f"text {empty[0]} has nothing to embed")
    return pooled
