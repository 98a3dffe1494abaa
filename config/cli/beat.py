"""`arbor beat`: sends the few periodic hints of the installation."""

from __future__ import annotations

import os

import click
from celery.signals import beat_init

from config.cli.celery_process import note_ready, run_celery


@click.command()
@click.option("--log-level", envvar="ARBOR_LOG_LEVEL", default="INFO", show_default=True)
def beat(log_level: str) -> None:
    """Run the schedule. One per installation is enough; two do no harm."""
    os.environ["ARBOR_PROCESS_NAME"] = "arbor beat"
    beat_init.connect(note_ready, weak=False)
    run_celery("beat", "--pidfile=", f"--loglevel={log_level}")
