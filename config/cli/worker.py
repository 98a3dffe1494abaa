"""`arbor worker`: one pool of workers, here or on any machine that reaches the database and the broker."""

from __future__ import annotations

import os
from typing import Any

import click
from celery.signals import worker_ready

from config.cli.celery_process import NOTED_EVERY_S, note_alive, run_celery
from config.pools import MODEL_CONNECTIONS, PoolKind


@click.command()
@click.option("--queues", "-q", required=True, help="Names of the queues, separated by commas.")
@click.option(
    "--pool",
    type=click.Choice([kind.value for kind in PoolKind]),
    default=PoolKind.PREFORK.value,
    show_default=True,
    help="How tasks run at once.",
)
@click.option(
    "--concurrency", "-c", type=click.IntRange(min=1), help="Tasks at once.  [default: the number of cores]"
)
@click.option("--name", help="Name in Flower and in the logs.  [default: the queues and the process id]")
def worker(queues: str, pool: str, concurrency: int | None, name: str | None) -> None:
    """Run one pool of workers: `arbor worker --queues heartbeat`, `arbor worker --queues llm --pool threads -c 200`."""
    if pool == PoolKind.THREADS:
        # Read by the settings, which are not loaded yet: hundreds of threads share a few connections.
        os.environ.setdefault("ARBOR_DB_POOL_SIZE", str(MODEL_CONNECTIONS))
    name = name or f"{queues.replace(',', '-')}-{os.getpid()}"
    os.environ["ARBOR_PROCESS_NAME"] = f"arbor {name}"
    worker_ready.connect(_keep_noting, weak=False)
    run_celery(
        "worker",
        f"--queues={queues}",
        f"--pool={pool}",
        f"--concurrency={concurrency or os.cpu_count() or 2}",
        f"--hostname={name}@%h",
        # Workers need no talk among themselves: the rows say what there is to do.
        "--without-gossip",
        "--without-mingle",
    )


def _keep_noting(sender: Any, **_: Any) -> None:
    """Note that the worker lives, from its own loop: one that hangs falls silent."""
    note_alive()
    sender.timer.call_repeatedly(NOTED_EVERY_S, note_alive)
