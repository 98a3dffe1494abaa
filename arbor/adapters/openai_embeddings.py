"""Embed texts by OpenAI's protocol: OpenAI, Ollama, vLLM, llama.cpp and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from arbor.adapters.embedding_http import DEFAULT_DEADLINE_S, HttpEmbedding
from arbor.adapters.exchange import Door

#: Texts in one request; OpenAI takes 2,048, servers of one's own fewer.
_BATCH = 64
#: The family that makes vectors of any wanted dimension; others refuse to be asked.
_SIZEABLE = "text-embedding-3"


class OpenAIEmbedder:
    """An embedder behind `POST /embeddings`."""

    in_process = False

    def __init__(
        self,
        *,
        name: str,
        dimension: int,
        door: Door,
        client: httpx.Client,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> None:
        self.model = f"openai/{name}"
        self.dimension = dimension
        self._name = name
        self._http = HttpEmbedding(
            model=self.model,
            dimension=dimension,
            door=door,
            client=client,
            batch=_BATCH,
            body=self._body,
            read=_read,
            deadline_s=deadline_s,
        )

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one row per text, each of length 1. Raises EmbeddingFailed."""
        return self._http.embed(texts)

    def _body(self, texts: list[str]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._name, "input": texts, "encoding_format": "float"}
        if self._name.startswith(_SIZEABLE):
            body["dimensions"] = self.dimension
        return body


def _read(body: Any) -> list[Any] | None:
    """Return the vectors in the order of their texts; servers may send another order, with an `index` in each."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) and "embedding" in item for item in data):
        return None
    places = [item.get("index", place) for place, item in enumerate(data)]
    if any(not isinstance(place, int) for place in places) or sorted(places) != list(range(len(data))):
        return None
    ordered: list[Any] = [None] * len(data)
    for place, item in zip(places, data, strict=True):
        ordered[place] = item["embedding"]
    return ordered
