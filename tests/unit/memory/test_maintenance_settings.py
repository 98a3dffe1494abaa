"""Invalid settings of maintenance are refused at the start, with the valid range."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("ARBOR_MAINTENANCE_SHARE", "0", "above 0 and at most 1, got 0"),
        ("ARBOR_MAINTENANCE_SHARE", "1.5", "above 0 and at most 1, got 1.5"),
        ("ARBOR_MEMORY_QUOTA", "0", "must be 1 at least, got 0"),
        ("ARBOR_ARCHIVE_BELOW", "2", "must be 0 to 1, got 2"),
        ("ARBOR_HEALTH_LIMITS", "expired=soon", "NAME=WARN:CRITICAL"),
    ],
)
def test_the_settings_say_what_would_be_right(name: str, value: str, right: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import config.settings"],
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert "ConfigurationInvalid" in ran.stderr
    assert right in ran.stderr
