"""Embed texts by OpenAI's protocol: OpenAI, Ollama, vLLM, llama.cpp and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from arbor.adapters.embedding_http import DEFAULT_DEADLINE_S, HttpEmbedding
from arbor.adapters.exchange import ApiEndpoint

#: Texts in one request; OpenAI accepts 2,048, self-hosted servers fewer.
_BATCH = 64
#: The models that can return vectors of a requested dimension; others refuse the option.
_RESIZABLE = "text-embedding-3"


class OpenAIEmbedder:
    """An embedder behind `POST /embeddings`."""

    in_process = False

    def __init__(
        self,
        *,
        name: str,
        dimension: int,
        endpoint: ApiEndpoint,
        client: httpx.Client,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> None:
        self.model = f"openai/{name}"
        self.dimension = dimension
        self._name = name
        self._http = HttpEmbedding(
            model=self.model,
            dimension=dimension,
            endpoint=endpoint,
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
        if self._name.startswith(_RESIZABLE):
            body["dimensions"] = self.dimension
        return body


def _read(body: Any) -> list[Any] | None:
    """Return the vectors in the order of their texts; servers may send another order, with an `index` in each."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) and "embedding" in item for item in data):
        return None
    positions = [item.get("index", position) for position, item in enumerate(data)]
    if any(not isinstance(position, int) for position in positions) or sorted(positions) != list(
        range(len(data))
    ):
        return None
    ordered: list[Any] = [None] * len(data)
    for position, item in zip(positions, data, strict=True):
        ordered[position] = item["embedding"]
    return ordered
