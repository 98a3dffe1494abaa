"""Database connections of workers: a persistent one per child process, a shared pool for threads.

Celery's fixup for Django, which the application omits, closes every connection before and after each task: three logins
for a heartbeat, each more expensive than all its statements.
"""

from __future__ import annotations

from typing import Any

from celery.signals import beat_init, task_postrun, worker_init, worker_process_init
from django.db import close_old_connections, connections


@task_postrun.connect
def _release(**_: Any) -> None:
    """Return a pooled connection to its pool; leave a persistent one open unless it is broken."""
    close_old_connections()


@worker_init.connect
@beat_init.connect
def _close_before_forks(**_: Any) -> None:
    """Close all connections, so that children inherit none."""
    connections.close_all()


@worker_process_init.connect
def _drop_inherited(**_: Any) -> None:
    """Drop inherited connections without closing them: they belong to the parent."""
    for connection in connections.all(initialized_only=True):
        connection.connection = None
