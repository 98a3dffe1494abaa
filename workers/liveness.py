"""Report workers and schedulers as alive, in the database."""

from __future__ import annotations

import os
import socket
import threading
from datetime import UTC, datetime
from typing import Any

import psycopg
import structlog
from celery.signals import beat_init, worker_ready, worker_shutting_down

from apps.heartbeats.services.processes import LIVENESS_PERIOD, LivenessReport, remove_process, write_liveness
from arbor.errors import ArborError

log = structlog.get_logger(__name__)

_stopping = threading.Event()


def _name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _report_liveness(*, kind: str, queues: str = "", pool: str = "", concurrency: int = 1) -> None:
    report = LivenessReport(
        name=_name(),
        kind=kind,
        queues=queues,
        pool=pool,
        concurrency=concurrency,
        started_at=datetime.now(UTC),
    )

    threading.Thread(target=report_until, args=(report, _stopping), name="liveness", daemon=True).start()


def report_until(
    report: LivenessReport, stopping: threading.Event, *, period_s: float = LIVENESS_PERIOD.total_seconds()
) -> None:
    """Report a process as alive until it stops, whatever the database refuses meanwhile."""
    while not stopping.is_set():
        try:
            write_liveness(report)
        except (psycopg.Error, ArborError) as error:
            # The database may be restored, not prepared yet, or read-only after a failover: the process tries again.
            log.warning("liveness_write_failed", error=str(error).strip())
        stopping.wait(period_s)


@worker_ready.connect
def _report_worker(sender: Any, **_: Any) -> None:
    pool = type(sender.controller.pool).__module__.rpartition(".")[2]
    _report_liveness(
        kind="worker",
        queues=",".join(sorted(queue.name for queue in sender.task_consumer.queues)),
        pool=pool,
        concurrency=int(sender.controller.concurrency or 1),
    )


@beat_init.connect
def _report_scheduler(**_: Any) -> None:
    _report_liveness(kind="scheduler")


@worker_shutting_down.connect
def _remove_worker(**_: Any) -> None:
    _stopping.set()
    remove_process(name=_name())
