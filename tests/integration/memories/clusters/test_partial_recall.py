"""Partial recall, from stored memories to clusters to results."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from apps.agents.models import Agent
from apps.memories.models import Cluster, Mind
from apps.memories.services.clusters.job import recluster_mind
from apps.memories.services.embedding import embedding
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.recall.partial_recall import (
    find_partial_activations,
    partial_recall_about,
    partial_recall_after,
)
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.embedding.ports import Vectors
from arbor.errors import Invalid
from arbor.memory.recall.weights import parse_weights
from tests.integration.memories.conftest import a_memory
from tests.integration.memories.in_scope import recall_in_scope
from tests.support.embedders import RemoteEmbedder

#: Directions at right angles to each other: the cluster's, one for each memory, and one for the query.
AXES = np.eye(256)
MEMBERS, OTHERS = 10, 100


def vector_at(cosine: float, *, axis: int) -> Vectors:
    """Return a vector at this cosine to the cluster, with the rest along an axis of its own."""
    return np.asarray(cosine * AXES[0] + math.sqrt(1 - cosine**2) * AXES[axis], dtype=np.float32)


@pytest.fixture
def agent_with_cluster(mind: Agent) -> Agent:
    """Return an agent with a cluster that matches better than any of its memories, among a hundred others."""
    texts = [f"Coltrane and saxophone {number}" for number in range(MEMBERS)]
    texts += [f"Something else {number}" for number in range(OTHERS)]
    vectors = np.stack(
        [vector_at(0.65 if place < MEMBERS else 0.0, axis=place + 1) for place in range(MEMBERS + OTHERS)]
    )
    with tenant_transaction(mind.tenant_id):
        memories = [a_memory(text, session="talk", position=place) for place, text in enumerate(texts)]
        store(agent_id=mind.id, memories=memories, vectors=vectors)
    recluster_mind(tenant_id=mind.tenant_id, agent_id=mind.id)
    return mind


def vague_query() -> list[float]:
    """Return a query near the cluster, and near none of its memories."""
    query: list[float] = vector_at(0.6, axis=255).tolist()
    return query


def test_a_cluster_is_recalled_when_no_memory_is_clear(
    agent_with_cluster: Agent, statements: list[str]
) -> None:
    with tenant_transaction(agent_with_cluster.tenant_id):
        cluster = Cluster.objects.get()
        statements.clear()
        (activation,) = find_partial_activations(agent_id=agent_with_cluster.id, vector=vague_query())
    assert len(statements) == 2
    assert (activation.cluster_id, activation.name, activation.keywords) == (
        cluster.id,
        cluster.name,
        tuple(cluster.keywords),
    )
    assert {"coltrane", "saxophone"} <= set(activation.keywords)
    assert activation.strength > 0.45 > activation.best_memory


def test_a_clear_memory_excludes_partial_recall(agent_with_cluster: Agent) -> None:
    with tenant_transaction(agent_with_cluster.tenant_id):
        nearest = Cluster.objects.get().members.latest("strength")
        clear = nearest.memory.embedding
        assert find_partial_activations(agent_id=agent_with_cluster.id, vector=clear) == []
        far = vector_at(0.0, axis=255).tolist()
        assert find_partial_activations(agent_id=agent_with_cluster.id, vector=far) == []


def test_a_recall_includes_clusters_only_without_a_clear_memory(
    agent_with_cluster: Agent, statements: list[str]
) -> None:
    with tenant_transaction(agent_with_cluster.tenant_id):
        vector = vague_query()

        def clusters_after(text: str) -> list[str]:
            recalled = recall_in_scope(agent_id=agent_with_cluster.id, text=text, vector=vector, limit=5)
            statements.clear()
            clusters = partial_recall_after(agent_id=agent_with_cluster.id, recalled=recalled, vector=vector)
            return [cluster.name for cluster in clusters]

        assert clusters_after("who was it again") == [Cluster.objects.get().name]
        assert clusters_after("coltrane saxophone") == []
        assert statements == [], "the words are clear, so no cluster is searched"
        assert partial_recall_after(agent_id=agent_with_cluster.id, recalled=[], vector=None) == []
        assert (
            partial_recall_after(agent_id=agent_with_cluster.id, recalled=[], vector=[math.nan] * 256) == []
        )


@pytest.mark.parametrize(
    ("weights", "text", "found"),
    [
        ("words=0.3", "coltrane saxophone", 0),
        ("words=10", "coltrane on a boat at sea in the night", 1),
        ("words=0", "coltrane saxophone", 1),
    ],
)
def test_a_memory_is_clear_by_its_words_at_any_weight_above_0(
    agent_with_cluster: Agent, settings: Any, weights: str, text: str, found: int
) -> None:
    settings.ARBOR_RECALL_WEIGHTS = parse_weights(weights)
    with tenant_transaction(agent_with_cluster.tenant_id):
        vector = vague_query()
        recalled = recall_in_scope(agent_id=agent_with_cluster.id, text=text, vector=vector, limit=5)
        clusters = partial_recall_after(agent_id=agent_with_cluster.id, recalled=recalled, vector=vector)
    assert len(clusters) == found


@pytest.mark.parametrize("vector", [[math.nan] * 256, [math.inf] * 256, [0.0] * 256, [1.0] * 128, []])
def test_a_vector_that_cannot_be_compared_is_refused(agent_with_cluster: Agent, vector: list[float]) -> None:
    with tenant_transaction(agent_with_cluster.tenant_id), pytest.raises(Invalid, match="vectors must"):
        find_partial_activations(agent_id=agent_with_cluster.id, vector=vector)


def test_a_query_vector_from_before_a_move_recalls_nothing(agent_with_cluster: Agent) -> None:
    with tenant_transaction(agent_with_cluster.tenant_id):
        Mind.objects.filter(agent_id=agent_with_cluster.id).update(embedding_dimension=128)
        assert partial_recall_after(agent_id=agent_with_cluster.id, recalled=[], vector=vague_query()) == []


def test_clusters_of_another_agent_are_not_recalled(
    agent_with_cluster: Agent, other_mind: Agent, foreign_mind: Agent
) -> None:
    for agent in (other_mind, foreign_mind):
        with tenant_transaction(agent.tenant_id):
            assert find_partial_activations(agent_id=agent.id, vector=vague_query()) == []
    with tenant_transaction(foreign_mind.tenant_id):
        assert find_partial_activations(agent_id=agent_with_cluster.id, vector=vague_query()) == []


def test_partial_recall_embeds_the_text_and_survives_a_failure(mind: Agent, remote: RemoteEmbedder) -> None:
    ask = partial(partial_recall_about, tenant_id=mind.tenant_id, agent_id=mind.id, recalled=[])
    assert ask(text="Who was it?") == []
    assert remote.asked == ["Who was it?"]
    remote.away = True
    assert ask(text="And when?") == []


def test_partial_recall_does_not_wait_for_a_paused_embedder(
    mind: Agent, remote: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tenant_transaction(mind.tenant_id):
        model = model_of(mind.id)
    monkeypatch.setattr(embedding, "_paused_until", {model: math.inf})
    assert partial_recall_about(tenant_id=mind.tenant_id, agent_id=mind.id, text="Who?", recalled=[]) == []
    assert remote.asked == []
