"""Embed texts over HTTP, by OpenAI's protocol or by Hugging Face's Text Embeddings Inference (TEI).

Texts go in batches, under one total deadline; every failure is one of Arbor's errors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt

from arbor.adapters.exchange import MAX_REPLY_BYTES, ApiEndpoint, post_json
from arbor.adapters.faults import error_for, fault_in, malformed_reply_error
from arbor.embedding.ports import unit_rows
from arbor.errors import EmbeddingFailed, ModelError

#: The limit of a whole call to `embed`, all its batches together.
_DEADLINE_S = 30.0
#: The embedded beginning of a long text. Common models read at most 8,191 tokens; 20,000 bytes
#: are about 5,000 tokens of English and 7,500 of Chinese.
MAX_TEXT_BYTES = 20_000
#: A number in a JSON reply: "-0.012345678901234567, "
_BYTES_PER_NUMBER = 24


class HttpEmbedder:
    """An embedder behind a POST: `body` builds the request for a batch, `read` extracts the list of vectors from the reply."""

    in_process = False

    def __init__(
        self,
        *,
        model: str,
        dimension: int,
        endpoint: ApiEndpoint,
        client: httpx.Client,
        batch: int,
        body: Callable[[list[str]], Mapping[str, Any]],
        read: Callable[[Any], list[Any] | None],
    ) -> None:
        self.model = model
        self.dimension = dimension
        self._endpoint = endpoint
        self._client = client
        # A reply must not exceed MAX_REPLY_BYTES.
        self._batch = max(1, min(batch, MAX_REPLY_BYTES // (_BYTES_PER_NUMBER * dimension)))
        self._body = body
        self._read = read

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return one row per text, each of length 1. Raises EmbeddingFailed for every failure."""
        ends_at = time.monotonic() + _DEADLINE_S
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start in range(0, len(texts), self._batch):
            texts_of_batch = [_truncate(text) for text in texts[start : start + self._batch]]
            try:
                vectors = self._ask(texts_of_batch, deadline_s=ends_at - time.monotonic())
            except ModelError as exc:
                raise EmbeddingFailed(str(exc)) from exc
            rows[start : start + len(texts_of_batch)] = unit_rows(
                vectors, count=len(texts_of_batch), dimension=self.dimension, model=self.model
            )
        return rows

    def _ask(self, texts: list[str], *, deadline_s: float) -> list[Any]:
        if deadline_s <= 0:
            raise EmbeddingFailed(f"{self._endpoint.provider} did not answer within {_DEADLINE_S:.1f} s")
        answer = post_json(self._client, self._endpoint, self._body(texts), deadline_s=deadline_s)
        fault = fault_in(answer)
        if fault is not None:
            raise error_for(fault, endpoint=self._endpoint, model=self.model, headers=answer.headers)
        vectors = self._read(answer.json())
        if vectors is None:
            raise malformed_reply_error(self._endpoint, answer)
        return vectors


def _truncate(text: str) -> str:
    """Cut the text to MAX_TEXT_BYTES, between characters."""
    encoded = text.encode(errors="replace")
    return text if len(encoded) <= MAX_TEXT_BYTES else encoded[:MAX_TEXT_BYTES].decode(errors="ignore")


#: Texts in one request; OpenAI accepts 2,048, self-hosted servers fewer.
_OPENAI_BATCH = 64
#: The beginning of the names of models that can return vectors of a requested dimension; others refuse the option.
_RESIZABLE = "text-embedding-3"


def openai_embedder(
    *, name: str, dimension: int, endpoint: ApiEndpoint, client: httpx.Client
) -> HttpEmbedder:
    """Return an embedder behind `POST /embeddings`, by OpenAI's protocol."""

    def body(texts: list[str]) -> dict[str, Any]:
        options = {"dimensions": dimension} if name.startswith(_RESIZABLE) else {}
        return {"model": name, "input": texts, "encoding_format": "float", **options}

    return HttpEmbedder(
        model=f"openai/{name}",
        dimension=dimension,
        endpoint=endpoint,
        client=client,
        batch=_OPENAI_BATCH,
        body=body,
        read=_read_openai,
    )


def _read_openai(body: Any) -> list[Any] | None:
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


#: The server's own default for `--max-client-batch-size`.
_TEI_BATCH = 32


def tei_embedder(*, name: str, dimension: int, endpoint: ApiEndpoint, client: httpx.Client) -> HttpEmbedder:
    """Return an embedder behind `POST /embed` of TEI, which cuts texts that are too long for its model."""
    return HttpEmbedder(
        model=f"tei/{name}",
        dimension=dimension,
        endpoint=endpoint,
        client=client,
        batch=_TEI_BATCH,
        body=lambda texts: {"inputs": texts, "truncate": True, "normalize": True},
        read=lambda body: body if isinstance(body, list) else None,
    )
