"""Database connections of workers: one for each child process that lasts, a shared pool where threads wait.

Celery's own fix-up for Django closes every connection before and after each task. For a heartbeat that is three
logins, each dearer than all its statements, so the application is made without it.
"""

from __future__ import annotations

from typing import Any

from celery.signals import beat_init, task_postrun, worker_init, worker_process_init
from django.db import close_old_connections, connections


@task_postrun.connect
def _release(**_: Any) -> None:
    """Give a pooled connection back; keep a lasting one, unless it broke, to be tried before its next use."""
    close_old_connections()


@worker_init.connect
@beat_init.connect
def _close_before_forks(**_: Any) -> None:
    """Leave no connection to the children."""
    connections.close_all()


@worker_process_init.connect
def _forget_the_parents(**_: Any) -> None:
    """Forget a connection that the parent opened meanwhile: it stays the parent's, and is not closed here."""
    for connection in connections.all(initialized_only=True):
        connection.connection = None
