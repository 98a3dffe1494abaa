"""Minds with memories of a few subjects, and the clusters that these form."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import numpy as np
from django.db.models import F

from apps.agents.models import Agent
from apps.memories.models import Cluster, ClusterMember, Mind, Upkeep
from apps.memories.services.clusters.job import recluster_mind
from apps.memories.services.store.remember import store
from apps.tenants.scope import tenant_transaction
from arbor.embedding.ports import Vectors
from tests.integration.memories.conftest import NOON, a_memory

#: Texts about each subject; the words differ from subject to subject.
SUBJECTS = {
    "jazz": "Coltrane saxophone trio",
    "bread": "sourdough oven crust",
    "chess": "bishop opening gambit",
}


def vectors_about(subject: str, count: int, *, seed: int = 0) -> Vectors:
    """Return vectors near each other, and far from those about other subjects."""
    center = np.random.default_rng(sorted(SUBJECTS).index(subject) + 100).standard_normal(256)
    noise = np.random.default_rng(seed).standard_normal((count, 256))
    rows = center / np.linalg.norm(center) + 0.5 * noise / np.linalg.norm(noise, axis=1)[:, None]
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None], dtype=np.float32)


def store_subject(
    agent: Agent, subject: str, count: int, *, seed: int = 0, days: int = 0, valence: float = 0.0
) -> list[UUID]:
    """Store memories about a subject and return their ids."""
    memories = [
        a_memory(
            f"{SUBJECTS[subject]} number {seed} {place}",
            emotional_valence=valence,
            importance=0.8,
            session=subject,
            position=100 * seed + place,
            occurred_at=NOON + timedelta(days=days, minutes=place),
        )
        for place in range(count)
    ]
    with tenant_transaction(agent.tenant_id):
        vectors = vectors_about(subject, count, seed=seed)
        return list(store(agent_id=agent.id, memories=memories, vectors=vectors).ids)


def store_all_subjects(agent: Agent) -> dict[str, list[UUID]]:
    """Give an agent memories of three subjects, and some without a common subject."""
    stored = {subject: store_subject(agent, subject, 6, days=place) for place, subject in enumerate(SUBJECTS)}
    noise = np.random.default_rng(7).standard_normal((12, 256))
    with tenant_transaction(agent.tenant_id):
        memories = [
            a_memory(f"Something else {place}", session="else", position=place) for place in range(12)
        ]
        rows = np.asarray(noise / np.linalg.norm(noise, axis=1)[:, None], dtype=np.float32)
        stored["nothing"] = list(store(agent_id=agent.id, memories=memories, vectors=rows).ids)
    return stored


def recluster(agent: Agent) -> int:
    return recluster_mind(tenant_id=agent.tenant_id, agent_id=agent.id)


def members_of_clusters(agent: Agent) -> dict[UUID, set[UUID]]:
    """Return the members of each cluster."""
    with tenant_transaction(agent.tenant_id):
        memberships: dict[UUID, set[UUID]] = {
            cluster_id: set()
            for cluster_id in Cluster.objects.filter(agent_id=agent.id).values_list("id", flat=True)
        }
        for cluster_id, memory_id in ClusterMember.objects.filter(cluster__agent_id=agent.id).values_list(
            "cluster_id", "memory_id"
        ):
            memberships[cluster_id].add(memory_id)
        return memberships


def cluster_of(agent: Agent, ids: list[UUID]) -> Cluster:
    """Return the only cluster with the first of these memories."""
    with tenant_transaction(agent.tenant_id):
        return Cluster.objects.get(members__memory_id=ids[0])


def unclustered_ids(agent: Agent) -> set[UUID]:
    with tenant_transaction(agent.tenant_id):
        rows = Upkeep.objects.filter(agent_id=agent.id, unclustered=True)
        return set(rows.values_list("memory_id", flat=True))


def count_stale_clusters(agent: Agent) -> int:
    with tenant_transaction(agent.tenant_id):
        return Cluster.objects.filter(agent_id=agent.id, stale=True).count()


def age_reclustering(agent: Agent) -> None:
    """Move the last reclustering an hour into the past."""
    with tenant_transaction(agent.tenant_id):
        mind = Mind.objects.filter(agent_id=agent.id)
        assert mind.update(clustered_at=F("clustered_at") - timedelta(hours=1)) == 1
