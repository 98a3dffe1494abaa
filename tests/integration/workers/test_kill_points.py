"""Points at which the acceptance tests kill workers, which must exist in the code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.fleet.faulty_worker import FOLDER, WorkerKiller

INSTALL = """
import django
django.setup()
from tests.acceptance.fleet.faulty_worker import install_points
install_points()
from apps.heartbeats.services.legs.runner import BatchSizer
sizer = BatchSizer()
sizer.count(heartbeats=8, elapsed_ms=20_000.0)
print(sizer.batch_size)
"""


def test_every_point_is_installed_in_the_application(tmp_path: Path) -> None:
    installed = subprocess.run(
        [sys.executable, "-c", INSTALL, "worker", "--queues=heartbeat"],
        env={**os.environ, FOLDER: str(tmp_path), "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (installed.returncode, installed.stderr) == (0, "")
    # Slow heartbeats still share batches, in which workers are killed.
    assert installed.stdout == "8\n"


def test_a_kill_planned_in_a_batch_waits_for_several_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"ada": {"name": "Ada", "point": "act ends", "in_batch": True}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _signal: killed.append(pid))
    killer = WorkerKiller(tmp_path)
    killer.reach_point("act ends", "ada")
    assert killed == []
    killer.together = 2
    killer.reach_point("act ends", "ada")
    killer.reach_point("act ends", "ada")
    assert killed == [os.getpid()]
