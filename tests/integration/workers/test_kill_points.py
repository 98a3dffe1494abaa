"""Points at which the acceptance tests kill workers, which must exist in the code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.acceptance.fleet.faulty_worker import FOLDER

INSTALL = """
import django
django.setup()
from tests.acceptance.fleet.faulty_worker import install_points
install_points()
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
