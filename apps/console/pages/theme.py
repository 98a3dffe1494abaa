"""What a theme's page shows. A fixed number of queries; looking changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from apps.memories.models import Cluster, ClusterMember, ClusterRelation

MEMBERS_SHOWN = 60
RELATED_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class RelatedTheme:
    """Another theme, and how the two bear on each other."""

    theme: Cluster
    relation: str
    outward: bool
    strength: float


@dataclass(frozen=True, kw_only=True)
class ThemePage:
    """A theme, as its page shows it."""

    theme: Cluster
    keywords: Sequence[str]
    members: Sequence[ClusterMember]
    related: Sequence[RelatedTheme]

    @property
    def hidden(self) -> int:
        """Return how many members are not shown."""
        return max(0, self.theme.size - len(self.members))


def read_theme(theme: Cluster) -> ThemePage:
    """Read what belongs to the theme, in the current tenant."""
    members = (
        ClusterMember.objects.filter(cluster_id=theme.id)
        .select_related("memory")
        .defer("memory__embedding", "memory__lexical")
        .order_by("-strength")[:MEMBERS_SHOWN]
    )
    ends = Q(source_id=theme.id) | Q(target_id=theme.id)
    relations = (
        ClusterRelation.objects.filter(ends)
        .select_related("source", "target")
        .defer("source__centroid", "target__centroid")
        .order_by("-strength")[:RELATED_SHOWN]
    )
    keywords = theme.keywords if isinstance(theme.keywords, list) else []
    return ThemePage(
        theme=theme,
        keywords=[str(word) for word in keywords],
        members=list(members),
        related=[
            RelatedTheme(
                theme=relation.target if relation.source_id == theme.id else relation.source,
                relation=relation.relation,
                outward=relation.source_id == theme.id,
                strength=relation.strength,
            )
            for relation in relations
        ],
    )
