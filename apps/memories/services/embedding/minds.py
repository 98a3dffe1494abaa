"""The embedding model of a mind: all of its vectors come from one model, so that they can be compared.

A new mind gets the installation's model. Later changes of the settings do not affect the mind; `arbor memory reembed` moves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.conf import settings

from apps.memories.services.embedding import queries
from apps.memories.services.embedding.literals import MAX_DIMENSION, halfvec_texts
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import ConfigurationInvalid, Invalid

#: The largest number of half precision, in which vectors are stored.
LARGEST = float(np.finfo(np.float16).max)


def installation_model() -> EmbeddingModel:
    """Return the model of new minds, which the settings name.

    Raises ConfigurationInvalid if its vectors are too long for the index of memories.
    """
    return check_dimension(
        EmbeddingModel(name=settings.ARBOR_EMBEDDING_MODEL, dimension=settings.ARBOR_EMBEDDING_DIMENSION)
    )


def check_dimension(model: EmbeddingModel) -> EmbeddingModel:
    """Return the model. Raises ConfigurationInvalid if its vectors are too long for the index of memories."""
    if model.dimension > MAX_DIMENSION:
        raise ConfigurationInvalid(
            f"the dimension of embeddings must be at most {MAX_DIMENSION}, got {model.dimension}; many models can return"
            " shorter vectors, and lose little"
        )
    return model


def model_of(agent_id: UUID) -> EmbeddingModel:
    """Return the model of the agent's vectors, in the open transaction: the installation's for a new mind. One statement."""
    rows = fetch(queries.MODEL_OF_MIND, agent=agent_id)
    if not rows:
        return installation_model()
    name, dimension = rows[0]
    return EmbeddingModel(name=name, dimension=dimension)


def query_vector(vector: Sequence[float] | None, model: EmbeddingModel | None) -> dict[str, Any]:
    """Return the values of QUERY_VECTOR: a query's vector, if it has one, and its model.

    Without a model only the dimension is checked; then vectors of different models may be compared.
    Raises Invalid unless the vector has 1 to MAX_DIMENSION finite numbers.
    """
    return {
        "vector": None if vector is None else halfvec_texts([_checked_query(vector)])[0],
        "vector_dimension": None if vector is None else len(vector),
        "vector_model": model.name if model else None,
    }


def half_precision(vector: Sequence[float]) -> npt.NDArray[np.float32]:
    """Round a query's vector to half precision, like the stored ones. Raises Invalid like `query_vector`."""
    return _checked_query(vector).astype(np.float16).astype(np.float32)


def _checked_query(vector: Sequence[float]) -> npt.NDArray[np.float32]:
    numbers = np.asarray(vector, dtype=np.float32)
    if numbers.ndim != 1 or not 1 <= len(numbers) <= MAX_DIMENSION:
        raise Invalid(
            f"a query's vector is one row of 1 to {MAX_DIMENSION} numbers, got the shape {numbers.shape}"
        )
    # `not … all()` also refuses NaN, whose comparisons are all false.
    if not (np.abs(numbers) <= LARGEST).all():
        raise Invalid(f"a query's vector must be finite numbers from -{LARGEST:g} to {LARGEST:g}")
    return numbers
