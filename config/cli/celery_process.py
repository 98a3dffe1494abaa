"""What worker, beat and Flower have in common: Celery's own command line, run in this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery.bin.celery import celery

#: Names the file that a process touches when it is ready and, every few seconds, while it lives. The supervisor sets
#: it; so does `compose.yaml`, whose health checks ask how old the file is.
READY_FILE = "ARBOR_READY_FILE"
NOTED_EVERY_S = 5.0
_APP = "workers.app"


def run_celery(*arguments: str) -> None:
    """Run a command of Celery to its end; this process is then that command and nothing else."""
    celery(args=["--quiet", "--app", _APP, *arguments], prog_name="arbor")


def note_alive(**_: Any) -> None:
    """Touch the file, if one is named: a receiver of Celery's signals."""
    path = os.environ.get(READY_FILE)
    if path:
        Path(path).touch(mode=0o600)
