"""Run Celery's beat, which sends the periodic tasks: the scheduler process."""

from __future__ import annotations

import os

from celery.signals import after_task_publish, beat_init

from config.cli.celery_process import load_app, touch_sign_of_life
from config.cli.serving_role import refuse_unsafe_role


def scheduler() -> None:
    """Run the scheduler, which sends the periodic tasks. One per installation is enough; two do no harm."""
    os.environ["ARBOR_PROCESS_NAME"] = "arbor scheduler"
    # Ready when it begins; alive as long as it sends what is due.
    beat_init.connect(touch_sign_of_life, weak=False)
    after_task_publish.connect(touch_sign_of_life, weak=False)
    app = load_app()
    refuse_unsafe_role()
    app.Beat(quiet=True).run()
