"""Read the pages of an episode, a cluster and a concept, each by a fixed number of queries, without changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db.models import Q

from apps.console.nodes import parse_id
from apps.memories.models import (
    Cluster,
    ClusterMember,
    ClusterRelation,
    Concept,
    Episode,
    Memory,
    MemoryConcept,
)

EPISODE_MEMBERS_SHOWN = 200
#: Pauses between two memories are shown from this duration on; 30 minutes end an episode.
PAUSE = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class EpisodeRow:
    """A memory of an episode, with the pause before it, if long enough."""

    memory: Memory
    pause: timedelta | None


@dataclass(frozen=True, kw_only=True)
class EpisodePage:
    """The data of an episode's page."""

    episode: Episode
    members: Sequence[EpisodeRow]
    before: Episode | None
    after: Episode | None

    @property
    def lasted(self) -> timedelta:
        """Return the time from the first to the last memory."""
        return self.episode.last_at - self.episode.started_at

    @property
    def hidden(self) -> int:
        """Return the number of memories that are not shown: later ones and deleted ones."""
        return max(0, self.episode.size - len(self.members))


def read_episode(episode: Episode) -> EpisodePage:
    """Read an episode's page in the current tenant."""
    memories = list(
        Memory.objects.filter(episode_id=episode.id, sequence__gt=0)
        .only("tenant_id", "content", "role", "occurred_at", "sequence", "importance", "status", "type")
        .order_by("sequence")[:EPISODE_MEMBERS_SHOWN]
    )
    pauses = [later.occurred_at - earlier.occurred_at for earlier, later in pairwise(memories)]
    shown_pauses = [None, *(pause if pause >= PAUSE else None for pause in pauses)][: len(memories)]
    others = Episode.objects.filter(agent_id=episode.agent_id).only(
        "tenant_id", "started_at", "last_at", "summary", "size"
    )
    return EpisodePage(
        episode=episode,
        members=[
            EpisodeRow(memory=memory, pause=pause)
            for memory, pause in zip(memories, shown_pauses, strict=True)
        ],
        before=others.filter(started_at__lt=episode.started_at).order_by("-started_at").first(),
        after=others.filter(started_at__gt=episode.started_at).order_by("started_at").first(),
    )


CLUSTER_MEMBERS_SHOWN = 60
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
    """The data of a cluster's page."""

    cluster: Cluster
    keywords: Sequence[str]
    members: Sequence[ClusterMember]
    #: The strongest relations.
    related: Sequence[ClusterNeighbor]
    has_more_related: bool

    @property
    def hidden(self) -> int:
        """Return the number of members that are not shown."""
        return max(0, self.cluster.size - len(self.members))


def read_cluster(cluster: Cluster) -> ClusterPage:
    """Read a cluster's page in the current tenant."""
    members = (
        ClusterMember.objects.filter(cluster_id=cluster.id)
        .select_related("memory")
        .defer("memory__embedding", "memory__lexical")
        .order_by("-strength", "memory_id")[:CLUSTER_MEMBERS_SHOWN]
    )
    ends = Q(source_id=cluster.id) | Q(target_id=cluster.id)
    relations = list(
        ClusterRelation.objects.filter(ends)
        .select_related("source", "target")
        .defer("source__centroid", "target__centroid")
        .order_by("-strength", "source_id", "target_id")[: RELATED_SHOWN + 1]
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
            for relation in relations[:RELATED_SHOWN]
        ],
        has_more_related=len(relations) > RELATED_SHOWN,
    )


CASES_SHOWN = 60
NARROWER_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class ConceptPage:
    """The data of a concept's page."""

    concept: Concept
    #: The concepts above it, the broadest first.
    broader: Sequence[Concept]
    #: The first narrower concepts by name.
    narrower: Sequence[Concept]
    has_more_narrower: bool
    #: The strongest cases.
    cases: Sequence[MemoryConcept]
    has_more_cases: bool


def read_concept(concept: Concept) -> ConceptPage:
    """Read a concept's page in the current tenant."""
    above = _ids(concept.ancestors)
    by_id = {broader.id: broader for broader in Concept.objects.filter(id__in=above)}
    narrower = list(Concept.objects.filter(parent_id=concept.id).order_by("key")[: NARROWER_SHOWN + 1])
    cases = list(
        MemoryConcept.objects.filter(concept_id=concept.id)
        .select_related("memory")
        .defer("memory__embedding", "memory__lexical")
        .order_by("-strength", "memory_id")[: CASES_SHOWN + 1]
    )
    return ConceptPage(
        concept=concept,
        broader=[by_id[concept_id] for concept_id in above if concept_id in by_id],
        narrower=narrower[:NARROWER_SHOWN],
        has_more_narrower=len(narrower) > NARROWER_SHOWN,
        cases=cases[:CASES_SHOWN],
        has_more_cases=len(cases) > CASES_SHOWN,
    )


def _ids(stored: Any) -> list[UUID]:
    # Values of other versions of Arbor are skipped, so that the page opens in any case.
    items = stored if isinstance(stored, list) else []
    return [row_id for item in items if (row_id := parse_id(item)) is not None]
