"""Pages of clusters."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from apps.console import cells, columns
from apps.console.listing import OwnPageAdmin
from apps.console.pages.cluster import ClusterPage, read_cluster
from apps.memories.models import Cluster


@admin.register(Cluster)
class ClusterAdmin(OwnPageAdmin):
    """List clusters, and show each with its keywords, members and feeling."""

    list_display = (
        "name",
        "agent_link",
        "keywords_shown",
        "size",
        "importance_shown",
        "feeling",
        "active",
    )
    list_filter = (("agent", AutocompleteSelectFilter),)
    text_fields = ("name",)
    page_template = "console/cluster.html"

    def read_page(self, row: Cluster) -> ClusterPage:
        """Read what its page shows."""
        return read_cluster(row)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Cluster]:
        """Leave the centre where it is."""
        clusters: QuerySet[Cluster] = super().get_queryset(request)
        return clusters.defer("centroid", *self.unread)

    @admin.display(description="about")
    def keywords_shown(self, cluster: Cluster) -> SafeString:
        """List its most telling words."""
        return cells.clipped(", ".join(str(word) for word in cluster.keywords) or "–", 70)

    importance_shown = columns.share("importance", "importance")

    @admin.display(description="feeling")
    def feeling(self, cluster: Cluster) -> SafeString:
        """Show how it feels, from bad to good."""
        return cells.feeling(cluster.emotional_valence, cluster.emotional_intensity)

    active = columns.moment("activated_at", "last active")
