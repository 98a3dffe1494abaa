"""Which processes of the platform live, by their own word in the database; nobody asks the broker."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connections
from django.db.models.functions import Now
from psycopg import connect

from apps.heartbeats.models import Process
from apps.tenants.scope import APP, OPS

#: How often a process says that it lives, and how long after its last word it counts as silent and is forgotten.
LIVENESS_PERIOD = timedelta(seconds=5)
SILENT_AFTER = timedelta(seconds=20)
FORGOTTEN_AFTER = timedelta(minutes=10)

_UPSERT = (
    "INSERT INTO heartbeats_process (name, kind, queues, pool, concurrency, started_at, seen_at)"
    " VALUES (%s, %s, %s, %s, %s, %s, now()) ON CONFLICT (name) DO UPDATE SET seen_at = now(), queues = EXCLUDED.queues"
)


def write_liveness(
    *, name: str, kind: str, queues: str, pool: str, concurrency: int, started_at: datetime
) -> None:
    """Write the process's row, on a connection of its own: it may be called from a thread of a process that forks."""
    # All of them: an address may ask for TLS.
    parameters = connections[APP].get_connection_params()
    with connect(**parameters, autocommit=True) as connection:
        connection.execute(_UPSERT, (name, kind, queues, pool, concurrency, started_at))


def remove_process(*, name: str) -> None:
    """Remove the row of a process that ends in good order."""
    Process.objects.filter(name=name).delete()


def living_processes() -> list[Process]:
    """Return the processes that were heard of lately."""
    return list(Process.objects.filter(seen_at__gte=Now() - SILENT_AFTER).order_by("kind", "name"))


def forget_silent_processes() -> int:
    """Delete the rows of processes that ended without a word."""
    deleted, _ = Process.objects.using(OPS).filter(seen_at__lt=Now() - FORGOTTEN_AFTER).delete()
    return deleted
