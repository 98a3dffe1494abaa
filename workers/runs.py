"""Record the runs of periodic jobs in the database."""

from __future__ import annotations

import time
from typing import Any

import structlog
from celery.signals import beat_init, task_postrun, task_prerun
from django.db import DatabaseError, connections

from apps.memories.services.jobs.job_runs import expect_runs, last_runs, record_job_run
from apps.queues import Task
from apps.tenants.scope import APP
from workers.schedule import entries

log = structlog.get_logger(__name__)

#: The periods of the jobs by task name. The dispatcher, which by default runs four times a second, is left out: its failures show
#: as due heartbeats.
_PERIODS = {
    name: entry["schedule"].total_seconds()
    for name, entry in entries().items()
    if name != Task.DISPATCH.value
}
#: The start times of current runs by task id.
_started: dict[str, float] = {}


@beat_init.connect
def _record_expected(sender: Any = None, **_: Any) -> None:
    """Record the expected jobs, so that the health figures show one that no worker runs; resume the scheduler after their last runs."""
    try:
        expect_runs(_PERIODS)
        if sender is not None:
            sender.scheduler.resume_after(last_runs())
    except DatabaseError as error:
        log.warning("expected_runs_failed", error=str(error).strip())
    finally:
        connections[APP].close()


@task_prerun.connect
def _record_start(sender: Any, task_id: str, **_: Any) -> None:
    if sender.name in _PERIODS:
        _started[task_id] = time.monotonic()


@task_postrun.connect
def _record_end(sender: Any, task_id: str, retval: Any, **_: Any) -> None:
    started = _started.pop(task_id, None)
    if started is None:
        return
    error = retval if isinstance(retval, Exception) else None
    try:
        record_job_run(
            name=sender.name,
            period_s=_PERIODS[sender.name],
            seconds=time.monotonic() - started,
            result=retval,
            error=error,
        )
    except DatabaseError as fault:
        log.warning("run_write_failed", task=sender.name, error=str(fault).strip())
