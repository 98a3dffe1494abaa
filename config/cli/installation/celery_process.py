"""Run one pool of workers, or the scheduler; load the Celery application, and touch the ready file of the process."""

from __future__ import annotations

import os
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import click
from celery import Celery
from celery.app.utils import find_app
from celery.concurrency import get_implementation
from celery.exceptions import SecurityWarning
from celery.signals import after_task_publish, beat_init, worker_process_init, worker_ready

from apps.queues import Queue
from arbor.errors import ConfigurationInvalid
from config.cli.installation.serving_role import refuse_unsafe_role
from config.credentials import NO_SERVER, broker_url
from config.environment import data_dir, env, server_urls
from config.pools import PoolKind, model_connections
from config.process_secrets import remove_foreign_secrets, secrets_of, secrets_of_queues
from config.supervisor import READY_FILE
from config.supervisor.launch import end_with_parent

TOUCHED_EVERY_S = 5.0


def load_app() -> Celery:
    """Load the Celery application with Django and the settings; the environment must be complete before.

    Celery's command line would also load every plug-in and a shell, which takes a second in each process.
    """
    # Celery would run all of Django's checks in each process; `arbor manage check` and `make check` are for that.
    os.environ.setdefault("CELERY_SKIP_CHECKS", "yes")
    app: Celery = find_app("workers.app")
    return app


def refuse_missing_broker() -> None:
    """Raise ConfigurationInvalid where no broker is configured, since the process would wait for one in vain."""
    if broker_url(server_urls(data_dir())).endswith(f"/{NO_SERVER}"):
        raise ConfigurationInvalid(
            "no broker is configured: set CELERY_BROKER_URL (or REDIS_URL), or start Arbor here with `arbor up` first"
        )


def touch_ready_file(**_: Any) -> None:
    """Touch the ready file, if the environment names one; a receiver of Celery's signals."""
    path = os.environ.get(READY_FILE)
    if path:
        Path(path).touch(mode=0o600)


def _parse_queues(value: str) -> list[str]:
    queue_names = [name.strip() for name in value.split(",")]
    unknown = [name for name in queue_names if name not in list(Queue)]
    if unknown:
        raise click.BadParameter(
            f"{', '.join(map(repr, unknown))}: choose from {', '.join(Queue)}", param_hint="--queues"
        )
    return queue_names


def worker(queues: str, pool: str, concurrency: int | None, name: str | None) -> None:
    """Run one pool of workers."""
    queue_names = _parse_queues(queues)
    if pool == PoolKind.THREADS:
        # Read by the settings, which are loaded later: hundreds of threads share a few connections.
        os.environ.setdefault("ARBOR_DB_POOL_SIZE", str(model_connections()))
    # The settings read this variable too.
    os.environ["ARBOR_PREPARED_STATEMENTS"] = env.str("ARBOR_PREPARED_STATEMENTS", default="true")
    remove_foreign_secrets(secrets_of_queues(queue_names))
    name = name or f"{'-'.join(queue_names)}-{os.getpid()}"
    os.environ["ARBOR_PROCESS_NAME"] = f"arbor {name}"
    # Celery warns root of messages that could run code; Arbor's messages are JSON, and root is usual in a container.
    warnings.simplefilter("ignore", SecurityWarning)
    worker_ready.connect(_touch_regularly, weak=False)
    worker_process_init.connect(_end_with_the_worker, weak=False)
    refuse_missing_broker()
    app = load_app()
    refuse_unsafe_role()
    process = app.Worker(
        hostname=f"{name}@{socket.gethostname()}",
        queues=queue_names,
        pool_cls=get_implementation(pool),
        concurrency=concurrency or os.cpu_count() or 2,
        optimization="fair",
        # Workers need no gossip: the rows in the database are the truth.
        without_gossip=True,
        without_mingle=True,
        quiet=True,
    )
    process.start()
    sys.exit(process.exitcode)


def _touch_regularly(sender: Any, **_: Any) -> None:
    """Touch the ready file from the worker's own loop, so that the file of a hanging worker gets old."""
    touch_ready_file()
    sender.timer.call_repeatedly(TOUCHED_EVERY_S, touch_ready_file)


def _end_with_the_worker(**_: Any) -> None:
    """End a child of the pool together with its worker, because no other process would end it."""
    arm = end_with_parent(signal.SIGKILL, parent=os.getppid())
    if arm is not None:
        arm()


def scheduler() -> None:
    """Run the scheduler, which publishes the periodic tasks. One per installation is enough; more do no harm."""
    remove_foreign_secrets(secrets_of("scheduler"))
    os.environ["ARBOR_PROCESS_NAME"] = "arbor scheduler"
    # The scheduler is ready when it begins, and alive while it publishes due tasks.
    beat_init.connect(touch_ready_file, weak=False)
    after_task_publish.connect(touch_ready_file, weak=False)
    refuse_missing_broker()
    app = load_app()
    refuse_unsafe_role()
    app.Beat(quiet=True).run()
