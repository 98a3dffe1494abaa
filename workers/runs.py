"""Each job that beat sends notes its runs in the database, whoever wrote it."""

from __future__ import annotations

import time
from typing import Any

import structlog
from celery.signals import beat_init, task_postrun, task_prerun
from django.db import DatabaseError, connections

from apps.memories.services.jobs.runs import expect_runs, note_run
from apps.queues import Task
from apps.tenants.scope import APP
from workers.schedule import entries

log = structlog.get_logger(__name__)

#: The dispatcher's tick comes every second, and what it fails to do shows as heartbeats that are due.
_PERIODS = {
    name: entry["schedule"].total_seconds()
    for name, entry in entries().items()
    if name != Task.DISPATCH.value
}
#: When the runs under way began, by the id of their message.
_began: dict[str, float] = {}


@beat_init.connect
def _expect(**_: Any) -> None:
    """Say what is going to be sent: a job that nobody takes from then on is told by health."""
    try:
        expect_runs(_PERIODS)
    except DatabaseError as fault:
        log.warning("runs_not_expected", error=str(fault).strip())
    finally:
        connections[APP].close()


@task_prerun.connect
def _begins(sender: Any, task_id: str, **_: Any) -> None:
    if sender.name in _PERIODS:
        _began[task_id] = time.monotonic()


@task_postrun.connect
def _ends(sender: Any, task_id: str, retval: Any, **_: Any) -> None:
    began = _began.pop(task_id, None)
    if began is None:
        return
    error = retval if isinstance(retval, Exception) else None
    try:
        note_run(
            name=sender.name,
            period_s=_PERIODS[sender.name],
            seconds=time.monotonic() - began,
            result=retval,
            error=error,
        )
    except DatabaseError as fault:
        log.warning("run_not_noted", task=sender.name, error=str(fault).strip())
