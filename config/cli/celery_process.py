"""Load the Celery application of worker, scheduler and Flower, and touch their sign of life."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery import Celery
from celery.app.utils import find_app

#: Names the file that a process touches when it is ready and, every few seconds, while it lives. The supervisor sets
#: it; so does `compose.yaml`, whose health checks ask how old the file is.
READY_FILE = "ARBOR_READY_FILE"
TOUCHED_EVERY_S = 5.0


def load_app() -> Celery:
    """Load the application, and with it Django and the settings: after the environment is as the process needs it.

    Not through Celery's command line, which loads every plug-in and a shell: a second for each process of the fleet.
    """
    # Celery would run all of Django's checks in each process; `arbor manage check` and `make check` are for that.
    os.environ.setdefault("CELERY_SKIP_CHECKS", "yes")
    app: Celery = find_app("workers.app")
    return app


def touch_sign_of_life(**_: Any) -> None:
    """Touch the file, if one is named: a receiver of Celery's signals."""
    path = os.environ.get(READY_FILE)
    if path:
        Path(path).touch(mode=0o600)
