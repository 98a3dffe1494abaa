"""Read a cluster's page by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from apps.memories.models import Cluster, ClusterMember, ClusterRelation

MEMBERS_SHOWN = 60
RELATED_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class ClusterNeighbor:
    """Another cluster, and its relation to this one."""

    cluster: Cluster
    relation: str
    outward: bool
    strength: float


@dataclass(frozen=True, kw_only=True)
class ClusterPage:
    """A cluster, as its page shows it."""

    cluster: Cluster
    keywords: Sequence[str]
    members: Sequence[ClusterMember]
    related: Sequence[ClusterNeighbor]

    @property
    def hidden(self) -> int:
        """Return how many members are not shown."""
        return max(0, self.cluster.size - len(self.members))


def read_cluster(cluster: Cluster) -> ClusterPage:
    """Read what belongs to the cluster, in the current tenant."""
    members = (
        ClusterMember.objects.filter(cluster_id=cluster.id)
        .select_related("memory")
        .defer("memory__embedding", "memory__lexical")
        .order_by("-strength")[:MEMBERS_SHOWN]
    )
    ends = Q(source_id=cluster.id) | Q(target_id=cluster.id)
    relations = (
        ClusterRelation.objects.filter(ends)
        .select_related("source", "target")
        .defer("source__centroid", "target__centroid")
        .order_by("-strength")[:RELATED_SHOWN]
    )
    keywords = cluster.keywords if isinstance(cluster.keywords, list) else []
    return ClusterPage(
        cluster=cluster,
        keywords=[str(word) for word in keywords],
        members=list(members),
        related=[
            ClusterNeighbor(
                cluster=relation.target if relation.source_id == cluster.id else relation.source,
                relation=relation.relation,
                outward=relation.source_id == cluster.id,
                strength=relation.strength,
            )
            for relation in relations
        ],
    )
