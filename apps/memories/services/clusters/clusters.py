"""Operations on one cluster: assign a memory to it, recalculate it, name it, and list its members and related clusters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Now
from pgvector import HalfVector

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Cluster, ClusterMember, ClusterRelation, Memory, Upkeep
from apps.memories.services.clusters import queries
from apps.memories.services.clusters.job import add_to_clusters, least_cosine, read_centers, read_latest
from apps.memories.services.clusters.reclustering import read_vectors
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.embedding.missing_vectors import REFUSED_BY_EMBEDDER
from apps.memories.services.graph.relations import id_of
from apps.memories.services.store.term_counts import lock_minds, read_frequencies
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid, NotFound
from arbor.memory.clusters.clusters import (
    MAX_CLUSTERS_OF_MEMORY,
    MemberFeeling,
    assign,
    centroid_of,
    emotional_signature,
)
from arbor.memory.clusters.links import ClusterLink
from arbor.memory.content import check_text
from arbor.memory.text.keywords import READ_CHARACTERS, READ_MEMBERS, default_name, keywords, terms_in
from arbor.memory.values import MemoryStatus

#: The largest limit of a listing.
MAX_LIMIT = 200
NAME_LENGTH = 200

#: Symmetric relations are stored once per direction.
_SYMMETRIC = (ClusterLink.OVERLAPS, ClusterLink.SIMILAR, ClusterLink.CONTRADICTS)


@dataclass(frozen=True, kw_only=True)
class ClusterMembership:
    """A member memory of a cluster, with the strength of its membership, 0 to 1."""

    memory_id: UUID
    content: str
    strength: float


class NamedCluster(NamedTuple):
    """A cluster of an agent, found by its id or its name."""

    id: UUID
    name: str


@dataclass(frozen=True, kw_only=True)
class RelatedCluster:
    """A cluster related to the queried one, with the strength of the relation, 0 to 1."""

    id: UUID
    name: str
    keywords: tuple[str, ...]
    relation: ClusterLink
    strength: float
    #: Whether the relation points from the queried cluster to this one.
    is_outgoing: bool


def memories_to_cluster() -> QuerySet[Upkeep]:
    """Return the upkeep of the memories that wait for a cluster; without those that their embedder refuses, which have no vector to cluster by."""
    refused = Memory.objects.filter(REFUSED_BY_EMBEDDER, id=OuterRef("memory_id"), status=MemoryStatus.ACTIVE)
    waiting: QuerySet[Upkeep] = Upkeep.objects.filter(~Exists(refused), unclustered=True)
    return waiting


def assign_memory_to_clusters(
    *, memory_id: UUID, max_clusters: int = MAX_CLUSTERS_OF_MEMORY
) -> dict[UUID, float]:
    """Assign one memory to its nearest clusters in the open transaction; return all its clusters with the strengths of its memberships.

    The memory joins at most `max_clusters` (1 to 3) clusters whose centers are near enough (`arbor.memory.clusters.clusters`). A memory
    that already has clusters, is archived, or has no vector is not assigned. Eight statements.
    Raises NotFound if the tenant has no such memory, Invalid if `max_clusters` is out of range.
    """
    if not 1 <= max_clusters <= MAX_CLUSTERS_OF_MEMORY:
        raise Invalid(f"a memory belongs to 1 to {MAX_CLUSTERS_OF_MEMORY} clusters, got {max_clusters}")
    rows = fetch(queries.MEMORY_VECTOR, memory=memory_id)
    if not rows:
        raise NotFound(f"this tenant has no memory {memory_id}")
    agent_id, status, vector = rows[0]
    lock_minds([agent_id])
    current = _clusters_of(memory_id)
    if current or status != "active" or vector is None:
        return current
    model = model_of(agent_id)
    clusters, centers = read_centers(agent_id, model)
    _, own = read_vectors([(memory_id, vector)], model)
    _, latest = read_latest(agent_id, model)
    if clusters:
        strengths = assign(own, centers, least=least_cosine(latest), most=max_clusters)
        add_to_clusters(agent_id, memory_ids=[memory_id], clusters=clusters, strengths=strengths)
    return _clusters_of(memory_id)


def recalculate_cluster(*, cluster_id: UUID) -> None:
    """Recompute a cluster's center, keywords, emotion and importance from its active members, in the open transaction.

    The center is the normalized mean of the members that belong to no other cluster more strongly, or of all members if there
    is no such member; null if no member has a vector. The members do not change: the job reclusters them. Six statements.
    Raises NotFound if the tenant has no such cluster.
    """
    agent_id, previous_keywords = _cluster(cluster_id)
    lock_minds([agent_id])
    model = model_of(agent_id)
    rows = fetch(
        queries.CLUSTER_MEMBERS, cluster=cluster_id, dimension=model.dimension, characters=READ_CHARACTERS
    )
    embedded = [row for row in rows if row[4] is not None]
    primary = [row for row in embedded if row[6]] or embedded
    _, vectors = read_vectors([(row[0], row[4]) for row in primary], model)
    center = centroid_of(vectors)
    texts = [row[5] for row in rows[:READ_MEMBERS]]
    words = keywords(texts, *read_frequencies(agent_id, terms_in(texts)))
    feeling = emotional_signature(
        [MemberFeeling(strength=row[1], importance=row[2], valence=row[3]) for row in rows]
    )
    Cluster.objects.filter(id=cluster_id).update(
        centroid=HalfVector(center) if center is not None else None,
        keywords=list(words),
        # Compared in the statement, so that a name that somebody gave meanwhile stays.
        name=Case(
            When(name=default_name(previous_keywords), then=Value(default_name(words))), default="name"
        ),
        emotional_valence=feeling.valence,
        emotional_intensity=feeling.intensity,
        importance=feeling.importance,
        size=len(rows),
        stale=False,
        updated_at=Now(),
    )


def remove_from_clusters(memory_ids: Collection[UUID]) -> int:
    """Remove memories from their clusters and mark these clusters stale; return the number of clusters.

    For callers that archive or restore memories: in the open transaction, with the mind locked. Unknown ids are
    ignored. One statement.
    """
    return change(queries.REMOVE_MEMORIES, ids=sorted(set(memory_ids))) if memory_ids else 0


def name_cluster(*, cluster_id: UUID, name: str) -> str:
    """Name a cluster for good, and return the name as it is stored: with single blanks.

    From then on the cluster exists as long as it has a member. Two statements. Raises NotFound if the tenant has no such cluster,
    Invalid for a name that is empty or too long.
    """
    shown = " ".join(name.split())
    if not 1 <= len(shown) <= NAME_LENGTH:
        raise Invalid(f"a cluster's name must have 1 to {NAME_LENGTH} characters, got {len(shown)}")
    check_text("a cluster's name", shown)
    _cluster(cluster_id)
    Cluster.objects.filter(id=cluster_id).update(name=shown)
    return shown


def cluster_members(*, cluster_id: UUID, limit: int = 20) -> list[ClusterMembership]:
    """Return the active members of a cluster, the nearest to its center first. Two statements.

    Raises NotFound if the tenant has no such cluster, Invalid for a limit outside 1 to 200.
    """
    _check_limit(limit)
    _cluster(cluster_id)
    members = ClusterMember.objects.filter(cluster_id=cluster_id, memory__status=MemoryStatus.ACTIVE)
    shown = members.order_by("-strength", "memory_id").values_list("memory_id", "memory__content", "strength")
    return [
        ClusterMembership(memory_id=memory_id, content=content, strength=strength)
        for memory_id, content, strength in shown[:limit]
    ]


def find_related_clusters(*, cluster_id: UUID, limit: int = 20) -> list[RelatedCluster]:
    """Return the clusters related to a cluster in either direction, the strongest first. Two statements.

    Raises NotFound if the tenant has no such cluster, Invalid for a limit outside 1 to 200.
    """
    _check_limit(limit)
    _cluster(cluster_id)
    incoming = Q(target_id=cluster_id) & ~Q(relation__in=[link.value for link in _SYMMETRIC])
    relations = ClusterRelation.objects.filter(Q(source_id=cluster_id) | incoming).annotate(
        other=Case(When(source_id=cluster_id, then="target_id"), default="source_id")
    )
    rows = relations.select_related("source", "target").defer("source__centroid", "target__centroid")
    related = []
    for row in rows.order_by("-strength", "other", "relation")[:limit]:
        is_outgoing = row.source_id == cluster_id
        other = row.target if is_outgoing else row.source
        related.append(
            RelatedCluster(
                id=other.id,
                name=other.name,
                keywords=tuple(other.keywords),
                relation=ClusterLink(row.relation),
                strength=row.strength,
                is_outgoing=is_outgoing,
            )
        )
    return related


def _clusters_of(memory_id: UUID) -> dict[UUID, float]:
    members = ClusterMember.objects.filter(memory_id=memory_id).order_by("-strength", "cluster_id")
    return dict(members.values_list("cluster_id", "strength"))


def _cluster(cluster_id: UUID) -> tuple[UUID, tuple[str, ...]]:
    row = Cluster.objects.filter(id=cluster_id).values_list("agent_id", "keywords").first()
    if row is None:
        raise NotFound(f"this tenant has no cluster {cluster_id}")
    agent_id, words = row
    return agent_id, tuple(words)


def _check_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"limit must be 1 to {MAX_LIMIT}, got {limit}")


def find_cluster(*, agent_id: UUID, named: str) -> NamedCluster:
    """Return an agent's cluster by its id or its name. Raises NotFound."""
    try:
        wanted = id_of(named)
    except NotFound:
        wanted = None
    matches = Cluster.objects.filter(Q(id=wanted) | Q(name__iexact=named), agent_id=agent_id)
    rows = sorted(matches.values_list("id", "name"), key=lambda row: (row[0] != wanted, row[0]))
    if not rows:
        raise NotFound(f"there is no cluster {named!r} of this agent")
    return NamedCluster(*rows[0])


def rename_cluster(*, agent_id: UUID, cluster: NamedCluster, name: str, reason: str, actor: str) -> None:
    """Name a cluster for good, and record that in the audit log. Raises Invalid for a name that is empty or too long."""
    stored = name_cluster(cluster_id=cluster.id, name=name)
    _record(
        agent_id,
        cluster,
        actor,
        f"named a cluster {stored!r}: {reason}",
        {"from": cluster.name, "to": stored},
    )


def mark_for_reclustering(*, agent_id: UUID, cluster: NamedCluster, reason: str, actor: str) -> None:
    """Mark a cluster stale, so that maintenance recomputes it from its memories, and record the request in the audit log."""
    Cluster.objects.filter(id=cluster.id).update(stale=True)
    _record(agent_id, cluster, actor, f"marked the cluster {cluster.name!r} for reclustering: {reason}", {})


def _record(
    agent_id: UUID, cluster: NamedCluster, actor: str, message: str, name_change: dict[str, str]
) -> None:
    record(
        action=AuditAction.MEMORIES_REVISED,
        actor=actor,
        agent_id=agent_id,
        message=message,
        detail={"cluster_id": str(cluster.id), "changes": {"name": name_change} if name_change else {}},
    )
