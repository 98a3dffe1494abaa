"""An embedder that a test can watch and break, and empty caches of vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from apps.memories.services.embedding import embedding
from arbor.embedding.ports import HashEmbedder
from arbor.errors import EmbeddingFailed


class RemoteEmbedder:
    """A remote embedder that counts requests, and fails on demand."""

    in_process = False

    def __init__(self, dimension: int = 256) -> None:
        self._fake = HashEmbedder(dimension)
        self.model = "remote/fake"
        self.dimension = dimension
        self.asked: list[str] = []
        #: Texts that it refuses as unreadable.
        self.refused: set[str] = set()
        self.away = False
        #: The number of texts after which it becomes unavailable.
        self.lasts: int | None = None

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.asked += texts
        spent = self.lasts is not None and len(self.asked) > self.lasts
        if self.away or spent or self.refused.intersection(texts):
            raise EmbeddingFailed("the embedding server does not answer")
        return self._fake.embed(texts)


def forget_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty the cache of this process, as in another process."""
    monkeypatch.setattr(embedding, "_vector_cache", embedding._VectorCache())
