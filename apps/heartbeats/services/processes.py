"""Record and read the processes that are alive, in the database instead of the broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from datetime import datetime, timedelta

from django.db import connections
from django.db.models.functions import Now

from apps.default_model import default_model
from apps.heartbeats.models import Process
from apps.providers import provider_slots
from apps.queues import Queue
from apps.tenants.encoding import to_json
from apps.tenants.postgresql.passwords import RoleConnection
from apps.tenants.scope import APP, OPS
from arbor.errors import ConfigurationInvalid

#: The time between two reports of a process, and the times without a report after which it counts as silent and its row is deleted.
LIVENESS_PERIOD = timedelta(seconds=5)
SILENT_AFTER = timedelta(seconds=20)
DELETED_AFTER = timedelta(minutes=10)

# A process may follow one that was killed under the same name, as in a container, so all columns are written.
_UPSERT = (
    "INSERT INTO heartbeats_process (name, kind, queues, pool, concurrency, started_at, model, calls, seen_at)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, now()) ON CONFLICT (name) DO UPDATE"
    " SET seen_at = now(), kind = EXCLUDED.kind, queues = EXCLUDED.queues, pool = EXCLUDED.pool,"
    " concurrency = EXCLUDED.concurrency, started_at = EXCLUDED.started_at, model = EXCLUDED.model, calls = EXCLUDED.calls"
)


@dataclass(frozen=True, kw_only=True)
class LivenessReport:
    """A process that reports itself as alive, with the values of its `Process` row."""

    name: str
    kind: str
    queues: str
    pool: str
    concurrency: int
    started_at: datetime


def write_liveness(report: LivenessReport) -> None:
    """Write the process's row, with the model and the calls of this process.

    On a connection of its own, because threads of forking processes call this.
    """
    calls = {provider: asdict(figures) for provider, figures in provider_slots.figures().items()}
    # Django's parameters, which include those of TLS.
    parameters = connections[APP].get_connection_params()
    with RoleConnection.connect(**parameters, autocommit=True) as connection:
        connection.execute(_UPSERT, [*astuple(report), _own_model(), to_json(calls)])


def _own_model() -> str:
    try:
        return default_model()
    except ConfigurationInvalid:
        # `arbor doctor` and each heartbeat say what is wrong.
        return ""


def fleet_model(processes: Sequence[Process] | None = None) -> str:
    """Return the model of agents without one of their own: that of the workers that run heartbeats.

    Without such a worker, return this process's own model, although its environment may name another one than the fleet's.
    """
    alive = living_processes() if processes is None else processes
    models = {
        process.model
        for process in alive
        if process.model and Queue.HEARTBEAT.value in process.queues.split(",")
    }
    return ", ".join(sorted(models)) or default_model()


def provider_calls(processes: Sequence[Process]) -> dict[str, dict[str, int]]:
    """Return the calls sent and waiting, and how many may be sent at once, by provider, over all processes."""
    sums: dict[str, Counter[str]] = {}
    for process in processes:
        for provider, figures in process.calls.items():
            sums.setdefault(provider, Counter()).update(figures)
    return {provider: dict(figures) for provider, figures in sorted(sums.items())}


def remove_process(*, name: str) -> None:
    """Delete the row of a process that shuts down."""
    Process.objects.filter(name=name).delete()


def living_processes() -> list[Process]:
    """Return the processes that reported lately."""
    return list(Process.objects.filter(seen_at__gte=Now() - SILENT_AFTER).order_by("kind", "name"))


def delete_silent_rows() -> int:
    """Delete the rows of processes without a report for DELETED_AFTER; return their number."""
    deleted, _ = Process.objects.using(OPS).filter(seen_at__lt=Now() - DELETED_AFTER).delete()
    return deleted
