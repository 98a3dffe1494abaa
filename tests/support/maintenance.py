"""The jobs of maintenance, in the order in which simulated days run them."""

from __future__ import annotations

from collections.abc import Callable

from apps.maintenance.services.consolidation import consolidate, maintain_episodes
from apps.memories.services.clusters.job import maintain_clusters
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.graph.neighborhoods import refresh_neighborhoods
from apps.memories.services.retention.buffer import promote_buffers

JOBS: tuple[Callable[[], object], ...] = (
    embed_backlog,
    maintain_episodes,
    consolidate,
    maintain_clusters,
    refresh_neighborhoods,
    promote_buffers,
)
