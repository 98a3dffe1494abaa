"""Run one pool of workers."""

from __future__ import annotations

import os
import signal
import socket
import sys
import warnings
from typing import Any

import click
from celery.concurrency import get_implementation
from celery.exceptions import SecurityWarning
from celery.signals import worker_process_init, worker_ready

from apps.queues import Queue
from config.cli.celery_process import TOUCHED_EVERY_S, load_app, touch_sign_of_life
from config.cli.serving_role import refuse_unsafe_role
from config.environment import env
from config.pools import PoolKind, model_connections
from config.supervisor.launch import end_with_parent


def _queues(value: str) -> list[str]:
    wanted = [name.strip() for name in value.split(",")]
    unknown = [name for name in wanted if name not in list(Queue)]
    if unknown:
        raise click.BadParameter(
            f"{', '.join(map(repr, unknown))}: choose from {', '.join(Queue)}", param_hint="--queues"
        )
    return wanted


def worker(queues: str, pool: str, concurrency: int | None, name: str | None) -> None:
    """Run one pool of workers."""
    wanted = _queues(queues)
    if pool == PoolKind.THREADS:
        # Read by the settings, which are not loaded yet: hundreds of threads share a few connections.
        os.environ.setdefault("ARBOR_DB_POOL_SIZE", str(model_connections()))
    # Read there too.
    os.environ["ARBOR_PREPARED_STATEMENTS"] = env.str("ARBOR_PREPARED_STATEMENTS", default="true")
    name = name or f"{'-'.join(wanted)}-{os.getpid()}"
    os.environ["ARBOR_PROCESS_NAME"] = f"arbor {name}"
    # As root, Celery warns of messages that could run code; ours are JSON, and in a container root is usual.
    warnings.simplefilter("ignore", SecurityWarning)
    worker_ready.connect(_touch_regularly, weak=False)
    worker_process_init.connect(_end_with_the_worker, weak=False)
    app = load_app()
    refuse_unsafe_role()
    process = app.Worker(
        hostname=f"{name}@{socket.gethostname()}",
        queues=wanted,
        pool_cls=get_implementation(pool),
        concurrency=concurrency or os.cpu_count() or 2,
        optimization="fair",
        # Workers need no talk among themselves: the rows say what there is to do.
        without_gossip=True,
        without_mingle=True,
        quiet=True,
    )
    process.start()
    sys.exit(process.exitcode)


def _touch_regularly(sender: Any, **_: Any) -> None:
    """Touch the sign of life from the worker's own loop: a worker that hangs stops touching it."""
    touch_sign_of_life()
    sender.timer.call_repeatedly(TOUCHED_EVERY_S, touch_sign_of_life)


def _end_with_the_worker(**_: Any) -> None:
    """End a child of the pool with its worker, which nobody else would replace."""
    arm = end_with_parent(signal.SIGKILL, parent=os.getppid())
    if arm is not None:
        arm()
