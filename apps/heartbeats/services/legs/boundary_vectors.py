"""Vectors of the examples of boundaries; the vectors of default boundaries are cached per process and embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import structlog

from apps.memories.services.embedding.embedding import embed_query
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed
from arbor.selves.boundaries import DEFAULT_EXAMPLES
from arbor.selves.boundary_check import Vector

log = structlog.get_logger(__name__)

type VectorsByText = dict[str, Vector]

#: Shared by all tenants; concurrent threads compute equal values. Arrays, for fast matching in each heartbeat.
_default_vectors: dict[EmbeddingModel | None, VectorsByText] = {}


def example_vectors(
    *, tenant_id: UUID, model: EmbeddingModel | None, own: Sequence[Mapping[str, Any]]
) -> VectorsByText:
    """Return the vectors of the examples of all of an agent's boundaries, by text; `own` are its rows as JSON.

    Call it outside any transaction. Texts that cannot be embedded now are left out; patterns still apply.
    """
    vectors = dict(_embed_defaults(tenant_id, model))
    missing = []
    for row in own:
        stored = row["vectors"]
        if model is not None and (stored.get("model"), stored.get("dimension")) == (
            model.name,
            model.dimension,
        ):
            vectors |= dict(zip(row["examples"], stored["rows"], strict=False))
        else:
            missing += row["examples"]
    return vectors | _embed(tenant_id=tenant_id, model=model, texts=missing)


def _embed(*, tenant_id: UUID, model: EmbeddingModel | None, texts: Sequence[str]) -> VectorsByText:
    """Return vectors by text; empty while the embedder fails."""
    wanted = [*dict.fromkeys(text for text in texts if text.strip())]
    if not wanted:
        return {}
    try:
        rows = embed_query(tenant_id=tenant_id, texts=wanted, model=model)
    except EmbeddingFailed as error:
        log.warning("boundary_embedding_failed", error=str(error))
        return {}
    return dict(zip(wanted, rows.tolist(), strict=True))


def _embed_defaults(tenant_id: UUID, model: EmbeddingModel | None) -> VectorsByText:
    """Return the vectors of the examples of default boundaries, cached; empty while the embedder fails."""
    if model not in _default_vectors:
        vectors = _embed(tenant_id=tenant_id, model=model, texts=DEFAULT_EXAMPLES)
        if not vectors:
            return {}
        _default_vectors[model] = {text: np.asarray(row, dtype=np.float32) for text, row in vectors.items()}
    return _default_vectors[model]
