"""Recluster an agent's memories: read the mind, plan the clusters as values, and write the plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models.functions import Left, Now

from apps.memories.models import Cluster, ClusterMember, ClusterRelation, Edge, Memory, Mind, Upkeep
from apps.memories.services.clusters import queries
from apps.memories.services.embedding.literals import decode_vectors, halfvec_texts
from apps.memories.services.store.term_counts import read_frequencies
from apps.tenants.scope import current_tenant
from apps.tenants.statements import change, fetch
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.ids import uuid7
from arbor.memory.clusters.clusters import (
    ClusterValue,
    MemberFeeling,
    check_vectors,
    cosines_among,
    emotional_signature,
)
from arbor.memory.clusters.links import (
    BY_RELATION,
    MemoryRelation,
    PlacedCluster,
    RankedClusterLink,
    link_clusters,
    middle_half,
)
from arbor.memory.clusters.reclustering import recluster
from arbor.memory.relations import GraphNodeKind, Relation
from arbor.memory.text.keywords import READ_CHARACTERS, READ_MEMBERS, default_name, keywords, terms_in

#: A membership is written again only if its strength has changed by more than this.
_MIN_CHANGE = 0.005


@dataclass(frozen=True, kw_only=True)
class ExistingCluster:
    """A cluster as the mind had it before the reclustering."""

    name: str
    keywords: tuple[str, ...]
    stale: bool
    members: Mapping[UUID, float]

    @property
    def is_named(self) -> bool:
        """Return whether somebody named the cluster: its name is not that of its keywords."""
        return self.name != default_name(self.keywords)


@dataclass(frozen=True, kw_only=True)
class MindClusters:
    """The memories, clusters and relations of an agent that a reclustering starts from."""

    agent_id: UUID
    model: EmbeddingModel
    clustered_at: datetime | None
    ids: Sequence[UUID]
    vectors: Vectors
    #: Importance, valence and time by memory.
    traits: Mapping[UUID, tuple[float, float, datetime]]
    existing: Mapping[UUID, ExistingCluster]
    relations: Sequence[MemoryRelation]

    @classmethod
    def read(cls, agent_id: UUID) -> MindClusters | None:
        """Read the mind's clusters in the open transaction; None for an agent without a mind. Five statements."""
        mind = Mind.objects.filter(agent_id=agent_id).first()
        if mind is None:
            return None
        model = EmbeddingModel(name=mind.embedding_model, dimension=mind.embedding_dimension)
        rows = fetch(queries.MIND_VECTORS, agent=agent_id, dimension=model.dimension)
        members: dict[UUID, dict[UUID, float]] = {}
        for cluster_id, memory_id, strength in ClusterMember.objects.filter(
            cluster__agent_id=agent_id
        ).values_list("cluster_id", "memory_id", "strength"):
            members.setdefault(cluster_id, {})[memory_id] = strength
        ids, vectors = read_vectors([row[:2] for row in rows], model)
        return cls(
            agent_id=agent_id,
            model=model,
            clustered_at=mind.clustered_at,
            ids=ids,
            vectors=vectors,
            traits={row[0]: row[2:] for row in rows},
            existing={
                row[0]: ExistingCluster(
                    name=row[1], keywords=tuple(row[2]), stale=row[3], members=members.get(row[0], {})
                )
                for row in Cluster.objects.filter(agent_id=agent_id).values_list(
                    "id", "name", "keywords", "stale"
                )
            },
            relations=[
                MemoryRelation(source=row[0], target=row[1], relation=Relation(row[2]), weight=row[3])
                for row in Edge.objects.filter(
                    agent_id=agent_id,
                    source_kind=GraphNodeKind.MEMORY.value,
                    target_kind=GraphNodeKind.MEMORY.value,
                    relation__in=[relation.value for relation in BY_RELATION],
                ).values_list("source_id", "target_id", "relation", "weight")
            ],
        )


def read_vectors(rows: Sequence[tuple[UUID, bytes]], model: EmbeddingModel) -> tuple[list[UUID], Vectors]:
    """Return the ids and the normalized vectors of rows of an id and a `halfvec` in binary."""
    if not rows:
        return [], np.empty((0, model.dimension), dtype=np.float32)
    ids, vectors = decode_vectors(rows, len(rows[0][1]))
    return ids, check_vectors(vectors, dimension=model.dimension)


def plan_clusters(mind: MindClusters, *, deviations: float) -> ReclusteringPlan:
    """Compute the clusters and their relations without the database, in seconds for 10,000 memories."""
    existing = [
        ClusterValue(id=cluster_id, centroid=None, members=cluster.members, named=cluster.is_named)
        for cluster_id, cluster in mind.existing.items()
    ]
    arranged = recluster(mind.ids, mind.vectors, existing, deviations=deviations)
    clusters = {cluster.id or uuid7(): cluster for cluster in arranged}
    placed = []
    for cluster_id, cluster in clusters.items():
        began, ended = middle_half([mind.traits[member][2] for member in cluster.members])
        assert cluster.centroid is not None
        placed.append(
            PlacedCluster(
                id=cluster_id,
                centroid=cluster.centroid,
                members=frozenset(cluster.members),
                began=began,
                ended=ended,
            )
        )
    near = cosines_among(mind.vectors).at(deviations)
    return ReclusteringPlan(mind, clusters, link_clusters(placed, mind.relations, near=near))


class ReclusteringPlan:
    """The clusters and relations to write; call `read_words` and `describe` before `write`."""

    def __init__(
        self, mind: MindClusters, clusters: Mapping[UUID, ClusterValue], links: Sequence[RankedClusterLink]
    ) -> None:
        self._mind = mind
        self._clusters = clusters
        self._links = links
        self._keywords = {
            cluster_id: mind.existing[cluster_id].keywords
            for cluster_id in clusters
            if not self._has_changed(cluster_id)
        }
        self._texts: dict[UUID, str] = {}
        self._frequencies: dict[int, int] = {}
        self._documents = 0

    def read_words(self) -> None:
        """Read the texts of the changed clusters' members, and the frequencies of their words. At most two statements."""
        ids = {memory_id for cluster_id in self._changed() for memory_id in self._most_typical(cluster_id)}
        if ids:
            texts = Memory.objects.filter(id__in=ids).values_list("id", Left("content", READ_CHARACTERS))
            self._texts = dict(texts)
            terms = terms_in(list(self._texts.values()))
            self._frequencies, self._documents = read_frequencies(self._mind.agent_id, terms)

    def describe(self) -> None:
        """Compute the keywords of the changed clusters from the words that were read."""
        for cluster_id in self._changed():
            texts = [
                self._texts[memory_id]
                for memory_id in self._most_typical(cluster_id)
                if memory_id in self._texts
            ]
            self._keywords[cluster_id] = keywords(texts, self._frequencies, self._documents)

    def write(self) -> bool:
        """Write the plan in the open transaction, with the mind locked. Eleven statements.

        Returns False and writes nothing if the mind was reclustered or moved to another embedder since it was read.
        """
        mind = self._mind
        agent, model = mind.agent_id, mind.model
        # The first worker wins.
        claimed = Mind.objects.filter(
            agent_id=agent,
            clustered_at=mind.clustered_at,
            embedding_model=model.name,
            embedding_dimension=model.dimension,
        ).update(clustered_at=Now())
        if not claimed:
            return False
        if dissolved := self._dissolved():
            change(queries.DISSOLVE_CLUSTERS, ids=dissolved)
            Cluster.objects.filter(id__in=dissolved).delete()
        if self._clusters:
            computed_names = {
                str(cluster_id): existing.name
                for cluster_id, existing in mind.existing.items()
                if not existing.is_named
            }
            change(
                queries.WRITE_CLUSTERS,
                agent=agent,
                rows=json.dumps(self._rows()),
                computed_names=json.dumps(computed_names),
            )
        self._write_members()
        waiting = Upkeep.objects.filter(agent_id=agent, unclustered=True, memory_id__in=list(mind.ids))
        waiting.update(unclustered=False)
        change(queries.RECOUNT_MEMBERS, agent=agent)
        ClusterRelation.objects.filter(source__agent_id=agent).delete()
        ClusterRelation.objects.bulk_create(
            ClusterRelation(
                tenant_id=current_tenant(),
                source_id=link.source,
                target_id=link.target,
                relation=link.link.value,
                strength=link.strength,
            )
            for link in self._links
        )
        return True

    def _dissolved(self) -> list[UUID]:
        """Lock and return the clusters that the plan dissolves, without those that somebody named since the mind was read."""
        gone = self._mind.existing.keys() - self._clusters.keys()
        if not gone:
            return []
        rows = Cluster.objects.select_for_update().filter(id__in=gone).order_by("id")
        return [
            cluster_id
            for cluster_id, name in rows.values_list("id", "name")
            if name == self._mind.existing[cluster_id].name
        ]

    def _write_members(self) -> None:
        removed: list[tuple[UUID, UUID]] = []
        changed: list[tuple[UUID, UUID, float]] = []
        for cluster_id, cluster in self._clusters.items():
            previous = self._mind.existing[cluster_id].members if cluster_id in self._mind.existing else {}
            removed += [(cluster_id, memory_id) for memory_id in previous if memory_id not in cluster.members]
            changed += [
                (cluster_id, memory_id, strength)
                for memory_id, strength in cluster.members.items()
                if abs(previous.get(memory_id, -1.0) - strength) > _MIN_CHANGE
            ]
        if removed:
            change(
                queries.LEAVE_CLUSTERS,
                clusters=[row[0] for row in removed],
                memories=[row[1] for row in removed],
            )
        if changed:
            change(
                queries.WRITE_MEMBERS,
                clusters=[row[0] for row in changed],
                memories=[row[1] for row in changed],
                strengths=[row[2] for row in changed],
            )

    def _rows(self) -> list[dict[str, Any]]:
        centers = halfvec_texts(np.array([cluster.centroid for cluster in self._clusters.values()]))
        rows = []
        for (cluster_id, cluster), centroid in zip(self._clusters.items(), centers, strict=True):
            feeling = emotional_signature(
                [
                    MemberFeeling(
                        strength=strength,
                        importance=self._mind.traits[memory_id][0],
                        valence=self._mind.traits[memory_id][1],
                    )
                    for memory_id, strength in cluster.members.items()
                ]
            )
            rows.append(
                {
                    "id": str(cluster_id),
                    "name": default_name(self._keywords[cluster_id]),
                    "centroid": centroid,
                    "keywords": self._keywords[cluster_id],
                    "valence": feeling.valence,
                    "intensity": feeling.intensity,
                    "importance": feeling.importance,
                    "size": len(cluster.members),
                }
            )
        return rows

    def _changed(self) -> list[UUID]:
        return [cluster_id for cluster_id in self._clusters if self._has_changed(cluster_id)]

    def _has_changed(self, cluster_id: UUID) -> bool:
        previous = self._mind.existing.get(cluster_id)
        return (
            previous is None
            or previous.stale
            or previous.members.keys() != self._clusters[cluster_id].members.keys()
        )

    def _most_typical(self, cluster_id: UUID) -> list[UUID]:
        members = self._clusters[cluster_id].members
        return sorted(members, key=lambda memory_id: (-members[memory_id], memory_id))[:READ_MEMBERS]
