"""Read the operations page: queues, processes, backlogs and failures, from rows alone, without asking the broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.agents.models import Agent, HeartbeatSchedule
from apps.calls.models import ExternalCall
from apps.console.badges import RowCount
from apps.console.pages.fleet import due_schedules
from apps.console.paging import ROWS_COUNTED
from apps.contacts.models import OutboxMessage
from apps.heartbeats.models import Process
from apps.heartbeats.services.processes import SILENT_AFTER
from apps.maintenance.services.recovery import FailedMaintenanceCall, failed_maintenance_calls
from apps.memories.models import Episode, Memory, Upkeep
from apps.memories.services.clusters.clusters import memories_to_cluster
from apps.memories.services.embedding.missing_vectors import WAITS_FOR_VECTOR
from apps.memories.services.jobs.health import MAX_COUNTED, Health, read_health
from apps.queues import Queue
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS
from arbor.agents.lifecycle import AgentStatus
from arbor.contacts.values import DeliveryStatus
from arbor.memory.values import MemoryStatus
from arbor.quotations import bounded, bounded_figure

#: Processes, failures of each kind, and tenants shown.
PROCESSES_SHOWN = 200
FAILED_SHOWN = 20
TENANTS_SHOWN = 100


@dataclass(frozen=True, kw_only=True)
class QueueLine:
    """A queue, and the workers that serve it."""

    name: str
    workers: int
    #: The tasks that run at once, over all of its workers.
    slots: int


@dataclass(frozen=True, kw_only=True)
class ProcessLine:
    """A process with its liveness."""

    process: Process
    alive: bool

    @property
    def queues(self) -> str:
        """Return the names of the queues, which may be broken into lines."""
        return self.process.queues.replace(",", ", ")


@dataclass(frozen=True, kw_only=True)
class BacklogFigure:
    """A count of rows that wait for something."""

    key: str
    title: str
    #: The queue whose workers reduce it.
    queue: str
    count: int

    @property
    def shown(self) -> str:
        """Return the count as text."""
        return bounded_figure(self.count, ROWS_COUNTED)


@dataclass(frozen=True, kw_only=True)
class OperationsPage:
    """The operations page, of the current tenant where there is one, and of the installation for its operators."""

    read_at: datetime
    #: The first processes by kind and name; the counts and the queues are of all of them.
    processes: Sequence[ProcessLine]
    process_count: int
    #: The number of processes that stopped reporting.
    silent: int
    queues: Sequence[QueueLine]
    backlogs: Sequence[BacklogFigure]
    failed_calls: Sequence[FailedMaintenanceCall]
    failed_messages: Sequence[OutboxMessage]
    #: The numbers of active and paused agents as text, counted up to the limit of lists.
    active: str
    paused: str
    health: Health | None
    tenants: Sequence[Tenant]
    #: Whether there are more tenants than are shown.
    has_more_tenants: bool

    #: The count at which the figures of the installation end.
    health_counted = MAX_COUNTED

    @property
    def unserved(self) -> list[str]:
        """Return the queues that no living worker serves."""
        return [queue.name for queue in self.queues if not queue.workers]


def read_operations(*, tenant_id: UUID | None, for_installation: bool) -> OperationsPage:
    """Read the page by a fixed number of queries: of a tenant, of the installation, or of both."""
    now = timezone.now()
    # All rows, which `delete_silent_rows` bounds: figures of some processes would show served queues as unserved.
    processes = [
        ProcessLine(process=process, alive=process.seen_at >= now - SILENT_AFTER)
        for process in Process.objects.defer("calls").order_by("kind", "name")
    ]
    counts = _counts(tenant_id) if tenant_id else {}
    tenants = (
        list(Tenant.objects.using(OPS).order_by("slug")[: TENANTS_SHOWN + 1]) if for_installation else []
    )
    return OperationsPage(
        read_at=now,
        processes=processes[:PROCESSES_SHOWN],
        process_count=len(processes),
        silent=sum(not line.alive for line in processes),
        queues=_queues(processes),
        backlogs=[
            BacklogFigure(key=key, title=title, queue=queue, count=counts[key])
            for key, (title, queue) in _BACKLOGS.items()
            if key in counts
        ],
        failed_calls=failed_maintenance_calls(limit=FAILED_SHOWN) if tenant_id else (),
        failed_messages=_failed_messages() if tenant_id else (),
        active=bounded(counts.get("active", 0), ROWS_COUNTED),
        paused=bounded(counts.get("paused", 0), ROWS_COUNTED),
        health=read_health() if for_installation else None,
        tenants=tenants[:TENANTS_SHOWN],
        has_more_tenants=len(tenants) > TENANTS_SHOWN,
    )


def _failed_messages() -> list[OutboxMessage]:
    failed = OutboxMessage.objects.filter(status=DeliveryStatus.FAILED).select_related("agent")
    return list(failed.order_by("-created_at", "-id")[:FAILED_SHOWN])


def _queues(processes: Sequence[ProcessLine]) -> list[QueueLine]:
    workers = [line.process for line in processes if line.alive and line.process.kind == "worker"]
    served = {
        queue: [worker for worker in workers if queue.value in worker.queues.split(",")] for queue in Queue
    }
    return [
        QueueLine(name=queue.value, workers=len(serving), slots=sum(worker.concurrency for worker in serving))
        for queue, serving in served.items()
    ]


#: The title of each backlog, and the queue whose workers reduce it.
_BACKLOGS: Mapping[str, tuple[str, str]] = {
    "due": ("agents due for a heartbeat", Queue.DISPATCH),
    "under_way": ("heartbeats under way", Queue.HEARTBEAT),
    "maintenance_calls": ("maintenance calls open", Queue.LLM),
    "outbox": ("messages to deliver", Queue.OUTBOX),
    "unembedded": ("memories without a vector", Queue.EMBEDDING),
    "stale": ("neighborhoods to compute", Queue.NEIGHBORHOODS),
    "unsummarized": ("closed episodes without a summary", Queue.EPISODES),
    "unclustered": ("memories without a cluster", Queue.CONSOLIDATION),
    "unextracted": ("memories without concepts yet", Queue.CONSOLIDATION),
    "unweighed": ("memories without an appraisal", Queue.CONSOLIDATION),
}


def _counted_rows() -> dict[str, QuerySet[Any]]:
    return {
        "due": due_schedules(Now()),
        "under_way": HeartbeatSchedule.objects.filter(in_flight=True),
        "maintenance_calls": ExternalCall.objects.filter(errand_status__in=["pending", "running"]),
        "outbox": OutboxMessage.objects.filter(status__in=[DeliveryStatus.PENDING, DeliveryStatus.SENDING]),
        "unembedded": Memory.objects.filter(WAITS_FOR_VECTOR, status=MemoryStatus.ACTIVE),
        "stale": Upkeep.objects.filter(stale=True),
        "unsummarized": Episode.objects.filter(ended_at__isnull=False, summarized_at__isnull=True),
        "unclustered": memories_to_cluster(),
        "unextracted": Upkeep.objects.filter(unextracted=True),
        "unweighed": Upkeep.objects.filter(unweighed=True),
        "active": Agent.objects.filter(status=AgentStatus.ACTIVE),
        "paused": Agent.objects.filter(status=AgentStatus.PAUSED),
    }


def _counts(tenant_id: UUID) -> dict[str, int]:
    """Count all backlogs in one statement, each up to the limit of lists."""
    rows = _counted_rows()
    counted = Tenant.objects.filter(id=tenant_id).values_list(
        *(RowCount(backlog.order_by()[:ROWS_COUNTED].values("pk")) for backlog in rows.values())
    )
    # Django does not send queries that it knows to be empty; their count is None.
    return {key: count or 0 for key, count in zip(rows, counted.get(), strict=True)}
