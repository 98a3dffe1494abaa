"""Read the memory and schedule panels of an agent's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now

from apps.agents.models import Agent, AgentPolicy
from apps.calls.models import DailyUsage
from apps.console.badges import RowCount
from apps.console.paging import ROWS_COUNTED
from apps.memories.models import BufferItem, Cluster, Concept, Edge, Episode, Memory, Upkeep
from apps.memories.services.recall.activation import activated_clusters
from arbor.heartbeat.usage import BudgetLevel
from arbor.memory.activation import ActiveCluster
from arbor.memory.values import MemoryStatus
from arbor.quotations import bounded_figure

#: Clusters shown at most.
CLUSTERS_SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class PanelCount:
    """A labeled count of rows as text, up to the limit of lists."""

    name: str
    shown: str


@dataclass(frozen=True, kw_only=True)
class MemoryPanel:
    """An agent's memory in figures."""

    figures: Sequence[PanelCount]
    #: Clusters with recently recalled memories.
    active: Sequence[ActiveCluster]
    #: The most important clusters, shown if none is active.
    clusters: Sequence[Cluster]


def _rows_to_count(agent_id: UUID) -> dict[str, QuerySet[Any]]:
    """Return the rows of an agent that the memory panel counts, by label."""
    memories = Memory.objects.filter(agent_id=agent_id)
    active = memories.filter(status=MemoryStatus.ACTIVE)
    return {
        "memories": active,
        "archived": memories.filter(status=MemoryStatus.ARCHIVED),
        "episodes": Episode.objects.filter(agent_id=agent_id),
        "clusters": Cluster.objects.filter(agent_id=agent_id),
        "concepts": Concept.objects.filter(agent_id=agent_id),
        "relations": Edge.objects.filter(agent_id=agent_id),
        "buffered": BufferItem.objects.filter(
            agent_id=agent_id, expires_at__gt=Now(), promoted_to__isnull=True
        ),
        "without a vector": active.filter(embedding__isnull=True),
        "neighborhoods to compute": Upkeep.objects.filter(agent_id=agent_id, stale=True),
    }


def read_memory_panel(agent_id: UUID) -> MemoryPanel:
    """Read the figures and clusters of an agent in the current tenant."""
    counted = _rows_to_count(agent_id)
    # Counted up to the limit of lists, so that large tables are not scanned.
    counts = Agent.objects.filter(id=agent_id).values_list(
        *(RowCount(rows.order_by()[:ROWS_COUNTED].values("pk")) for rows in counted.values())
    )
    most_important = Cluster.objects.filter(agent_id=agent_id).only("tenant_id", "name", "size")
    return MemoryPanel(
        figures=[
            PanelCount(name=name, shown=bounded_figure(count, ROWS_COUNTED))
            for name, count in zip(counted, counts.get(), strict=True)
        ],
        active=activated_clusters(agent_id=agent_id, limit=CLUSTERS_SHOWN),
        clusters=list(most_important.order_by("-importance", "-size", "id")[:CLUSTERS_SHOWN]),
    )


@dataclass(frozen=True, kw_only=True)
class SchedulePanel:
    """Notices, daily usage and policy of an agent."""

    #: [(kind, text)].
    notices: Sequence[tuple[str, str]]
    idle_heartbeats: int
    usage: DailyUsage | None
    policy: AgentPolicy | None

    @property
    def is_low(self) -> bool:
        """Return whether the day's budget runs low."""
        return self.usage is not None and self.usage.level != BudgetLevel.NORMAL


def read_schedule_panel(agent_id: UUID, *, notices: Any, idle_heartbeats: int) -> SchedulePanel:
    """Read the panel in the current tenant; `notices` is the column of the agent's state."""
    return SchedulePanel(
        notices=[
            (str(notice.get("kind", "")), str(notice.get("text", "")))
            for notice in (notices if isinstance(notices, list) else [])
            if isinstance(notice, Mapping)
        ],
        idle_heartbeats=idle_heartbeats,
        usage=DailyUsage.objects.filter(agent_id=agent_id, day=datetime.now(UTC).date()).first(),
        policy=AgentPolicy.objects.filter(agent_id=agent_id).first(),
    )
