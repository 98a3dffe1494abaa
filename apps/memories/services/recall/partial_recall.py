"""Partial recall: clusters that a query matches while none of their memories is clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.conf import settings

from apps.memories.services.embedding.minds import model_of, query_vector
from apps.memories.services.recall import queries
from apps.memories.services.recall.search import embed_for_agent
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.errors import EmbeddingFailed, Invalid
from arbor.memory.clusters.clusters import (
    ClusterResonance,
    Cosines,
    check_vectors,
    find_partial_recalls,
    is_clear,
)
from arbor.memory.values import Recalled

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class PartialRecall:
    """A cluster that a query matches while none of its memories is clear."""

    cluster_id: UUID
    name: str
    keywords: tuple[str, ...]
    #: The cosine of the query with the cluster's center, and with the nearest of its memories.
    strength: float
    best_memory: float


@dataclass(frozen=True, kw_only=True)
class _NearestClusters:
    """The clusters nearest to a query, and its cosines with the agent's memories."""

    #: The name and the keywords of each cluster.
    rows: dict[UUID, tuple[str, tuple[str, ...]]]
    resonances: list[ClusterResonance]
    #: The spread of the cosines with all memories, and the cosine with the nearest one.
    cosines: Cosines
    best: float


def find_partial_activations(
    *, agent_id: UUID, vector: Sequence[float], model: EmbeddingModel | None = None
) -> list[PartialRecall]:
    """Return the clusters that a query matches while none of their memories is clear (seed 004), the nearest first, at most three.

    `vector` is the query's vector by the model of the agent's vectors, of any length but zero. In the open transaction, two
    statements; changes nothing. The rule is `arbor.memory.clusters.clusters.find_partial_recalls`.
    Raises Invalid for a vector that is not finite, or of another dimension than the agent's.
    """
    unit = check_vectors([vector], dimension=model_of(agent_id).dimension)[0].tolist()
    return _partial(_find_resonances(agent_id, unit, model, without_session=""))


def partial_recall_after(
    *,
    agent_id: UUID,
    recalled: Sequence[Recalled],
    vector: Sequence[float] | None,
    model: EmbeddingModel | None = None,
    without_session: str = "",
) -> list[PartialRecall]:
    """Return the partially recalled clusters after a recall; none if a recalled memory is clear.

    A memory is clear if it has the query's words, or is by far the nearest in meaning. In the open transaction; one
    statement, or none if a memory is clear by its words. Memories of `without_session`, if given, do not count. For a
    vector that cannot be compared with the agent's, the result is empty.
    """
    words_weight = settings.ARBOR_RECALL_WEIGHTS.words
    if vector is None or any(is_clear(memory.components, words_weight=words_weight) for memory in recalled):
        return []
    try:
        unit = check_vectors([vector])[0].tolist()
    except Invalid:
        return []
    found = _find_resonances(agent_id, unit, model, without_session=without_session)
    return [] if found.best >= found.cosines.clear else _partial(found)


def partial_recall_about(
    *, tenant_id: UUID, agent_id: UUID, text: str, recalled: Sequence[Recalled] | None = None
) -> list[PartialRecall]:
    """Return the partially recalled clusters for a text, in transactions of its own; none if the embedder fails.

    Without `recalled`, the clusters that match the text while none of their own memories is clear.
    """
    try:
        vector, model = embed_for_agent(tenant_id=tenant_id, agent_id=agent_id, text=text)
    except EmbeddingFailed as error:
        log.warning("partial_recall_failed", agent_id=str(agent_id), error=str(error))
        return []
    with tenant_transaction(tenant_id):
        if recalled is None:
            return find_partial_activations(agent_id=agent_id, vector=vector, model=model)
        return partial_recall_after(agent_id=agent_id, recalled=recalled, vector=vector, model=model)


def _find_resonances(
    agent_id: UUID, vector: Sequence[float], model: EmbeddingModel | None, *, without_session: str
) -> _NearestClusters:
    rows = fetch(
        queries.RESONANCES, agent=agent_id, without=without_session or None, **query_vector(vector, model)
    )
    mean, deviation, best = rows[0][5:] if rows else (0.0, 0.0, 0.0)
    return _NearestClusters(
        rows={row[0]: (row[1], tuple(row[2])) for row in rows},
        resonances=[ClusterResonance(id=row[0], center=row[3], best_memory=row[4]) for row in rows],
        cosines=Cosines(mean=mean, deviation=deviation),
        best=best,
    )


def _partial(found: _NearestClusters) -> list[PartialRecall]:
    return [
        PartialRecall(
            cluster_id=resonance.id,
            name=found.rows[resonance.id][0],
            keywords=found.rows[resonance.id][1],
            strength=resonance.center,
            best_memory=resonance.best_memory,
        )
        for resonance in find_partial_recalls(found.resonances, found.cosines)
    ]
