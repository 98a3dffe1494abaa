"""Embed texts by Hugging Face's Text Embeddings Inference, a self-hosted server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from arbor.adapters.embedding_http import DEFAULT_DEADLINE_S, HttpEmbedding
from arbor.adapters.exchange import ApiEndpoint

#: The server's own default for `--max-client-batch-size`.
_BATCH = 32


class TeiEmbedder:
    """An embedder behind `POST /embed`; the server cuts texts that are too long for its model."""

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
        self.model = f"tei/{name}"
        self.dimension = dimension
        self._http = HttpEmbedding(
            model=self.model,
            dimension=dimension,
            endpoint=endpoint,
            client=client,
            batch=_BATCH,
            body=lambda texts: {"inputs": texts, "truncate": True, "normalize": True},
            read=_read,
            deadline_s=deadline_s,
        )

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one row per text, each of length 1. Raises EmbeddingFailed."""
        return self._http.embed(texts)


def _read(body: Any) -> list[Any] | None:
    return body if isinstance(body, list) else None
