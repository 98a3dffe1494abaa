"""Record and read the processes that are alive, in the database instead of the broker."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime, timedelta

from django.db import connections
from django.db.models.functions import Now
from psycopg import connect

from apps.heartbeats.models import Process
from apps.tenants.scope import APP, OPS

#: Time between two reports of a process; times after its last report when it counts as silent, and when its row is deleted.
LIVENESS_PERIOD = timedelta(seconds=5)
SILENT_AFTER = timedelta(seconds=20)
FORGOTTEN_AFTER = timedelta(minutes=10)

_UPSERT = (
    "INSERT INTO heartbeats_process (name, kind, queues, pool, concurrency, started_at, seen_at)"
    " VALUES (%s, %s, %s, %s, %s, %s, now()) ON CONFLICT (name) DO UPDATE SET seen_at = now(), queues = EXCLUDED.queues"
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
    """Write the process's row on a connection of its own, because threads of forking processes call this."""
    # Django's parameters, which include those of TLS.
    parameters = connections[APP].get_connection_params()
    with connect(**parameters, autocommit=True) as connection:
        connection.execute(_UPSERT, astuple(report))


def remove_process(*, name: str) -> None:
    """Delete the row of a process that shuts down."""
    Process.objects.filter(name=name).delete()


def living_processes() -> list[Process]:
    """Return the processes that reported lately."""
    return list(Process.objects.filter(seen_at__gte=Now() - SILENT_AFTER).order_by("kind", "name"))


def forget_silent_processes() -> int:
    """Delete the rows of processes that stopped reporting."""
    deleted, _ = Process.objects.using(OPS).filter(seen_at__lt=Now() - FORGOTTEN_AFTER).delete()
    return deleted
