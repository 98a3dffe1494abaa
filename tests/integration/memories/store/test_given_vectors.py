"""Vectors that callers give with memories: stored, or refused whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from apps.agents.models import Agent
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.errors import Invalid
from tests.integration.memories.conftest import (
    a_memory,
    memories_of,
    term_counts,
)
from tests.integration.memories.store.given_vectors import store_with, unit_vectors


@pytest.mark.parametrize(
    ("vectors", "complaint"),
    [
        (unit_vectors(1.0, 0.5), "one row for each of 1 memories, got the shape"),
        (np.zeros(256), "got the shape"),
        (np.full((1, 256), np.nan), "finite"),
    ],
)
def test_vectors_that_do_not_fit_are_refused_whole(mind: Agent, vectors: Any, complaint: str) -> None:
    with pytest.raises(Invalid, match=complaint):
        store_with(mind, vectors, a_memory("The ferry leaves at dawn."))
    assert memories_of(mind) == []


@pytest.mark.parametrize("made_by", [None, EmbeddingModel(name="openai/small", dimension=128)])
def test_vectors_of_another_length_than_their_models_are_refused(
    mind: Agent, made_by: EmbeddingModel | None
) -> None:
    rows = np.ones((1, 64), dtype=np.float32)
    with pytest.raises(Invalid, match="numbers each, got 64"), tenant_transaction(mind.tenant_id):
        store(agent_id=mind.id, memories=[a_memory("The bell rings.")], vectors=rows, model=made_by)
    assert memories_of(mind) == []
    assert term_counts(mind) == {}


def test_vectors_of_another_model_are_not_stored(mind: Agent) -> None:
    store_with(mind, unit_vectors(1.0), a_memory("The ferry leaves at dawn."))
    other = EmbeddingModel(name="openai/small", dimension=64)
    with tenant_transaction(mind.tenant_id):
        rows = np.ones((1, 64), dtype=np.float32)
        store(agent_id=mind.id, memories=[a_memory("The bell rings at noon.")], vectors=rows, model=other)
    assert [row.embedding is None for row in memories_of(mind)] == [False, True]
