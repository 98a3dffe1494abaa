"""The broker of the settings, to which commands and the console publish, and the log of killed pool children."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BROKER = "redis://127.0.0.1:6399/3"


@pytest.mark.parametrize("module", ["config.cli.kit.with_django", "config.wsgi"])
def test_a_process_that_enqueues_uses_the_broker(module: str) -> None:
    code = f"import {module}; from celery import current_app; print(current_app.conf.broker_url)"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"CELERY_BROKER_URL": BROKER},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert process.stdout.strip() == BROKER


def test_a_killed_child_of_a_pool_is_logged() -> None:
    code = (
        "from workers.app import app; app.log.setup_logging_subsystem();"
        "from billiard.util import error; error('Process %r exited with %r', 'ForkPoolWorker-1', 'signal 9')"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "ForkPoolWorker-1" in process.stdout + process.stderr


@pytest.mark.parametrize("arguments", [("worker", "--queues", "cleanup"), ("scheduler",)])
def test_a_process_without_a_configured_broker_ends(arguments: tuple[str, ...], tmp_path: Path) -> None:
    own = {"CELERY_BROKER_URL": "", "REDIS_URL": "", "ARBOR_DATA_DIR": str(tmp_path), "ARBOR_ENV_FILE": ""}
    process = subprocess.run(
        [sys.executable, "-m", "config.cli", *arguments],
        cwd=Path(__file__).parents[3],
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert process.returncode == 1
    assert "set CELERY_BROKER_URL (or REDIS_URL)" in process.stderr
