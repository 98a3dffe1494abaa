"""What worker, beat and Flower have in common: Celery's own command line, run in this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery.bin.celery import celery

#: Set by the supervisor: the file that a process touches when it has become ready.
READY_FILE = "ARBOR_READY_FILE"
_APP = "workers.app"


def run_celery(*arguments: str) -> None:
    """Run a command of Celery to its end; this process is then that command and nothing else."""
    celery(args=["--quiet", "--app", _APP, *arguments], prog_name="arbor")


def note_ready(**_: Any) -> None:
    """Tell the supervisor, if there is one, that this process is ready: a receiver of Celery's signals."""
    path = os.environ.get(READY_FILE)
    if path:
        Path(path).touch(mode=0o600)
