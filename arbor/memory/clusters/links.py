"""Relations between clusters: by shared members, nearness, time, and the relations between their memories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import combinations, product
from uuid import UUID

import numpy as np

from arbor.embedding.ports import Vectors
from arbor.memory.relations import Relation

#: Two clusters overlap from this share of the smaller one's members on.
OVERLAPS_AT = 0.2
#: The most links of one kind from one cluster; the strongest are used.
MAX_LINKS = 10


class ClusterLink(StrEnum):
    """The kinds of relations between clusters."""

    #: The clusters share members. Symmetric.
    OVERLAPS = "overlaps"
    #: The clusters' centers are near. Symmetric.
    SIMILAR = "similar"
    #: The second cluster is near the first and came after it, or relations of their memories say so.
    EVOLVES_INTO = "evolves_into"
    #: Memories of one cluster contradict memories of the other. Symmetric.
    CONTRADICTS = "contradicts"
    #: Memories of the first cluster caused memories of the second.
    CAUSES = "causes"
    #: Memories of the first are evidence for memories of the second.
    SUPPORTS = "supports"
    #: Memories of the first were concluded from memories of the second.
    DERIVES_FROM = "derives_from"


#: The link between two clusters by the relation between their members; other relations make no link.
BY_RELATION: Mapping[Relation, ClusterLink] = {
    Relation.CONTRADICTS: ClusterLink.CONTRADICTS,
    Relation.CAUSES: ClusterLink.CAUSES,
    Relation.SUPPORTS: ClusterLink.SUPPORTS,
    Relation.DERIVED_FROM: ClusterLink.DERIVES_FROM,
    Relation.EVOLVED_INTO: ClusterLink.EVOLVES_INTO,
}


@dataclass(frozen=True, kw_only=True)
class PlacedCluster:
    """A cluster as the input of the computation of links."""

    id: UUID
    centroid: Vectors
    members: frozenset[UUID]
    #: The first and the third quartile of the members' times.
    began: datetime
    ended: datetime


@dataclass(frozen=True, kw_only=True)
class MemoryRelation:
    """A relation between two memories with its confidence, 0 to 1."""

    source: UUID
    target: UUID
    relation: Relation
    weight: float


@dataclass(frozen=True, kw_only=True)
class RankedClusterLink:
    """A relation of one cluster to another, with its strength, 0 to 1."""

    source: UUID
    target: UUID
    link: ClusterLink
    strength: float


type _Strengths = dict[tuple[UUID, UUID, ClusterLink], float]


def middle_half(moments: Sequence[datetime]) -> tuple[datetime, datetime]:
    """Return the first and the third quartile of at least one moment."""
    ordered = sorted(moments)
    last = len(ordered) - 1
    return ordered[last // 4], ordered[last - last // 4]


def link_clusters(
    clusters: Sequence[PlacedCluster], relations: Iterable[MemoryRelation], *, near: float
) -> list[RankedClusterLink]:
    """Return the links between clusters; of each cluster the MAX_LINKS strongest of each kind.

    Centers at a cosine of `near` or more are similar. A cluster whose middle half lies wholly before that of a similar
    cluster evolves into the latter. Relations between members add up as independent evidence: 1 − Π(1 − weight).
    """
    ordered = sorted(clusters, key=lambda cluster: cluster.id)
    strengths: _Strengths = {}
    for found in (_overlaps(ordered), _nearness(ordered, near), _evidence(ordered, relations)):
        for key, strength in found.items():
            strengths[key] = max(strength, strengths.get(key, 0.0))
    by_kind: dict[tuple[UUID, ClusterLink], list[RankedClusterLink]] = defaultdict(list)
    for (source, target, link), strength in strengths.items():
        by_kind[source, link].append(
            RankedClusterLink(source=source, target=target, link=link, strength=strength)
        )
    return [
        link
        for key in sorted(by_kind)
        for link in sorted(by_kind[key], key=lambda link: (-link.strength, link.target))[:MAX_LINKS]
    ]


def _overlaps(clusters: Sequence[PlacedCluster]) -> _Strengths:
    sizes = {cluster.id: len(cluster.members) for cluster in clusters}
    shared: Counter[tuple[UUID, UUID]] = Counter()
    for clusters_of_member in _clusters_of(clusters).values():
        shared.update(combinations(clusters_of_member, 2))
    strengths: _Strengths = {}
    for (first, other), count in shared.items():
        share = count / min(sizes[first], sizes[other])
        if share >= OVERLAPS_AT:
            strengths[first, other, ClusterLink.OVERLAPS] = strengths[other, first, ClusterLink.OVERLAPS] = (
                share
            )
    return strengths


def _nearness(clusters: Sequence[PlacedCluster], near: float) -> _Strengths:
    strengths: _Strengths = {}
    if len(clusters) < 2:
        return strengths
    centers = np.stack([cluster.centroid for cluster in clusters])
    cosines = np.clip(centers @ centers.T, 0.0, 1.0)
    np.fill_diagonal(cosines, 0.0)
    for row, column in np.argwhere((cosines >= near) & (cosines > 0)):
        first, second, cosine = clusters[row], clusters[column], float(cosines[row, column])
        strengths[first.id, second.id, ClusterLink.SIMILAR] = cosine
        if first.ended < second.began:
            strengths[first.id, second.id, ClusterLink.EVOLVES_INTO] = cosine
    return strengths


def _evidence(clusters: Sequence[PlacedCluster], relations: Iterable[MemoryRelation]) -> _Strengths:
    clusters_by_member = _clusters_of(clusters)
    doubts: _Strengths = {}
    for relation in relations:
        link = BY_RELATION.get(relation.relation)
        if link is None:
            continue
        pairs = set(
            product(clusters_by_member.get(relation.source, ()), clusters_by_member.get(relation.target, ()))
        )
        if link is ClusterLink.CONTRADICTS:
            pairs |= {(target, source) for source, target in pairs}
        # The pairs are a set: where both memories are in both clusters, a contradiction counts once.
        for first, other in pairs:
            if first != other:
                doubts[first, other, link] = doubts.get((first, other, link), 1.0) * (1 - relation.weight)
    return {key: 1 - doubt for key, doubt in doubts.items() if doubt < 1}


def _clusters_of(clusters: Sequence[PlacedCluster]) -> dict[UUID, list[UUID]]:
    """Return the clusters of each member, in the order of their ids."""
    clusters_by_member: dict[UUID, list[UUID]] = defaultdict(list)
    for cluster in clusters:
        for memory_id in cluster.members:
            clusters_by_member[memory_id].append(cluster.id)
    return clusters_by_member
