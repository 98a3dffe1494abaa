"""Read the memory panel of an agent's page by three queries: figures and active clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.console.paging import ROWS_COUNTED
from apps.memories.models import Cluster
from apps.memories.services.recall.activation import activated_clusters
from apps.tenants.statements import fetch
from arbor.memory.activation import ActiveCluster

#: Clusters that are shown when none is present in mind: the weightiest.
CLUSTERS_SHOWN = 6

_COUNTED = {
    "memories": "memories_memory WHERE status = 'active' AND",
    "archived": "memories_memory WHERE status = 'archived' AND",
    "episodes": "memories_episode WHERE",
    "clusters": "memories_cluster WHERE",
    "concepts": "memories_concept WHERE",
    "relations": "memories_edge WHERE",
    "buffered": "memories_bufferitem WHERE expires_at > now() AND promoted_to_id IS NULL AND",
    "unembedded": "memories_memory WHERE embedding IS NULL AND status = 'active' AND",
    "stale": "memories_upkeep WHERE stale AND",
}
# Each is counted up to what a list shows; a table of any size is never read as a whole.
_ONE = (
    "(SELECT count(*) FROM (SELECT FROM {} tenant_id = %(tenant)s AND agent_id = %(agent)s LIMIT %(most)s) n)"
)
_FIGURES = "SELECT " + ", ".join(_ONE.format(table) for table in _COUNTED.values())


@dataclass(frozen=True, kw_only=True)
class PanelCount:
    """A labeled count; `more`: there are more rows than were counted."""

    name: str
    count: int
    more: bool


@dataclass(frozen=True, kw_only=True)
class MemoryPanel:
    """An agent's memory in figures."""

    figures: Sequence[PanelCount]
    #: Present in mind now; empty where nothing was recalled lately.
    active: Sequence[ActiveCluster]
    #: The weightiest clusters, where none is active.
    clusters: Sequence[Cluster]


def read_memory_panel(agent_id: UUID) -> MemoryPanel:
    """Read the figures and clusters of an agent in the current tenant."""
    (counts,) = fetch(_FIGURES, agent=agent_id, most=ROWS_COUNTED + 1)
    weightiest = Cluster.objects.filter(agent_id=agent_id).only("tenant_id", "name", "size")
    return MemoryPanel(
        figures=[
            PanelCount(name=name, count=min(count, ROWS_COUNTED), more=count > ROWS_COUNTED)
            for name, count in zip(_COUNTED, counts, strict=True)
        ],
        active=activated_clusters(agent_id=agent_id, limit=CLUSTERS_SHOWN),
        clusters=list(weightiest.order_by("-importance", "-size")[:CLUSTERS_SHOWN]),
    )
