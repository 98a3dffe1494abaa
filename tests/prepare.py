"""`python -m tests.prepare`: compile the test modules and migrate a cluster, once for all workers.

`make test` does so beside mypy, which uses one core. Otherwise each worker would compile all modules, and wait for the one that migrates.
"""

from __future__ import annotations

import os
import subprocess
import sys

import django

# Sets the environment before the settings are read.
from tests import environment  # noqa: F401
from tests.support.cluster import ROOT, ensure_cluster, has_cluster


def main() -> int:
    """Collect all tests, which compiles them, and create the cluster that workers copy; skip both if it exists. Return the exit code."""
    if has_cluster():
        return 0
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if collected.returncode != 0:
        sys.stderr.write(collected.stdout + collected.stderr)
        return collected.returncode
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    django.setup()
    ensure_cluster()
    return 0


if __name__ == "__main__":
    sys.exit(main())
