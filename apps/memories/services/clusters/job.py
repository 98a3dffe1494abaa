"""The clustering job: assign new memories every few minutes, and recluster a mind when that is due.

The job reads rows in one transaction, computes outside of any, and writes the results in a second, short transaction
under the lock of the mind. Nothing is written if another worker was faster.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings

from apps.memories.services.clusters import queries
from apps.memories.services.clusters.reclustering import MindClusters, plan_clusters, read_vectors
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.errors import ConfigurationInvalid
from arbor.memory.clusters.clusters import assign, cosines_among

#: The number of latest memories whose spread decides how near a cluster must be to a new memory, until the mind is reclustered.
LATEST = 1_000
#: The range of ARBOR_CLUSTER_DEVIATIONS: below, all memories form one cluster; above, none forms any.
MIN_DEVIATIONS, MAX_DEVIATIONS = 0.5, 10.0


def maintain_clusters() -> JobRunResult:
    """Assign new memories to the clusters of their agents, and recluster the minds that are due."""
    due = _due()
    waiting = queries.MINDS_TO_CLUSTER.replace("{due}", due).replace("{waiting}", queries.WAITING_UNCLUSTERED)
    return run_job("clusters", waiting=waiting, step=maintain_agent_clusters)


def maintain_agent_clusters(tenant_id: UUID, agent_id: UUID) -> int:
    """Run one step for one agent: recluster its mind if that is due, else assign its new memories.

    Returns the number of memories reclustered or assigned; 0 if no memory could be assigned, or another worker was faster.
    """
    with tenant_transaction(tenant_id):
        due = fetch(queries.CLUSTERING_STATE.format(due=_due()), agent=agent_id)
    if not due:
        return 0
    return (
        recluster_mind(tenant_id=tenant_id, agent_id=agent_id)
        if due[0][0]
        else assign_latest(tenant_id=tenant_id, agent_id=agent_id)
    )


def recluster_mind(*, tenant_id: UUID, agent_id: UUID) -> int:
    """Recluster all of an agent's memories; return their number, at least 1.

    Up to 19 statements for any number of memories. Computing takes some seconds for 10,000 memories, outside of any
    transaction. Returns 0 and writes nothing for an agent without a mind, or if the mind was reclustered or moved to another
    embedder in the meantime.
    """
    with tenant_transaction(tenant_id):
        mind = MindClusters.read(agent_id)
    if mind is None:
        return 0
    plan = plan_clusters(mind, deviations=read_deviations())
    with tenant_transaction(tenant_id):
        plan.read_words()
    plan.describe()
    with tenant_transaction(tenant_id):
        lock_minds([agent_id])
        return max(1, len(mind.ids)) if plan.write() else 0


def assign_latest(*, tenant_id: UUID, agent_id: UUID) -> int:
    """Assign an agent's latest memories without a cluster to clusters; return the number assigned.

    Six statements. A memory that fits no cluster waits for the next reclustering, which may create one.
    """
    with tenant_transaction(tenant_id):
        model = model_of(agent_id)
        latest = fetch(queries.LATEST_VECTORS, agent=agent_id, dimension=model.dimension, latest=LATEST)
        clusters, centers = read_centers(agent_id, model)
    fresh = {memory_id for memory_id, _, waits in latest if waits}
    if not fresh or not clusters:
        return 0
    ids, vectors = read_vectors([(memory_id, vector) for memory_id, vector, _ in latest], model)
    rows = [row for row, memory_id in enumerate(ids) if memory_id in fresh]
    strengths = assign(vectors[rows], centers, least=least_cosine(vectors))
    with tenant_transaction(tenant_id):
        lock_minds([agent_id])
        if model_of(agent_id) != model:
            return 0
        return add_to_clusters(
            agent_id, memory_ids=[ids[row] for row in rows], clusters=clusters, strengths=strengths
        )


def least_cosine(vectors: Vectors) -> float:
    """Return the least cosine of a memory and the center of its cluster, by the spread of these vectors."""
    return cosines_among(vectors).at(read_deviations())


def read_deviations() -> float:
    """Return the setting ARBOR_CLUSTER_DEVIATIONS. Raises ConfigurationInvalid outside its range."""
    wanted: float = settings.ARBOR_CLUSTER_DEVIATIONS
    if not MIN_DEVIATIONS <= wanted <= MAX_DEVIATIONS:
        raise ConfigurationInvalid(
            f"ARBOR_CLUSTER_DEVIATIONS must be {MIN_DEVIATIONS} to {MAX_DEVIATIONS}, got {wanted}"
        )
    return wanted


def read_latest(agent_id: UUID, model: EmbeddingModel) -> tuple[list[UUID], Vectors]:
    """Return the agent's latest memories that have a vector, with their vectors. One statement."""
    rows = fetch(queries.LATEST_VECTORS, agent=agent_id, dimension=model.dimension, latest=LATEST)
    return read_vectors([(memory_id, vector) for memory_id, vector, _ in rows], model)


def read_centers(agent_id: UUID, model: EmbeddingModel) -> tuple[list[UUID], Vectors]:
    """Return the agent's clusters that have a center of the model's dimension, and these centers."""
    return read_vectors(fetch(queries.CLUSTER_CENTERS, agent=agent_id, dimension=model.dimension), model)


def add_to_clusters(
    agent_id: UUID, *, memory_ids: list[UUID], clusters: list[UUID], strengths: Vectors
) -> int:
    """Add memories to clusters by strengths of shape (memories, clusters); return the number of memories added.

    In the open transaction, with the mind locked. One statement.
    """
    wanted = [
        (clusters[column], memory_ids[row], float(strengths[row, column]))
        for row, column in zip(*(places.tolist() for places in strengths.nonzero()), strict=True)
    ]
    if not wanted:
        return 0
    joined: int = fetch(
        queries.JOIN_CLUSTERS,
        agent=agent_id,
        clusters=[row[0] for row in wanted],
        memories=[row[1] for row in wanted],
        strengths=[row[2] for row in wanted],
    )[0][0]
    return joined


def _due() -> str:
    """Return the condition for a mind to be reclustered."""
    long_ago = queries.CLUSTERED_LONG_AGO.format(seconds=settings.ARBOR_CLUSTER_PERIOD.total_seconds())
    return queries.MIND_IS_DUE.replace("{long_ago}", long_ago).replace(
        "{waiting}", queries.WAITING_UNCLUSTERED
    )
