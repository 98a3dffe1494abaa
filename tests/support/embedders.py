"""An embedder that a test can watch and break, and empty caches of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from apps.memories.services.embedding import embedding
from arbor.adapters.embedders import connect_embedder
from arbor.embedding.ports import HashEmbedder
from arbor.errors import EmbeddingFailed


class RemoteEmbedder:
    """A remote embedder that counts requests, and fails on demand."""

    in_process = False

    def __init__(self, dimension: int = 256) -> None:
        self._fake = HashEmbedder(dimension)
        self.model = "remote/fake"
        self.dimension = dimension
        #: The texts of all requests.
        self.asked: list[str] = []
        #: Texts that fail each request that has one of them.
        self.refused: set[str] = set()
        #: Whether every request fails.
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


@contextmanager
def registered_embedder[E: RemoteEmbedder](
    monkeypatch: pytest.MonkeyPatch, embedder: E, *, name: str
) -> Iterator[E]:
    """Connect the model of this name to an embedder, with empty caches; other models keep their own."""

    def connect_any(model: str, *parts: Any, **options: Any) -> Any:
        return embedder if model == name else connect_embedder(model, *parts, **options)

    monkeypatch.setattr(embedding, "connect_embedder", connect_any)
    embedding.embedder_for.cache_clear()
    forget_vectors(monkeypatch)
    try:
        yield embedder
    finally:
        embedding.embedder_for.cache_clear()
