"""The time of a warm start, without other work on the machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.acceptance.installation import Installation

pytestmark = [pytest.mark.acceptance, pytest.mark.bar, pytest.mark.timeout(300)]

WARM_START_WITHIN_S = 8
WARM_STARTS = 3


def test_a_warm_start_is_quick() -> None:
    with tempfile.TemporaryDirectory(prefix="arbor-up-") as folder:
        installation = Installation(Path(folder))
        try:
            took_s = warm_starts(installation)
        finally:
            for process in installation.processes():
                process.kill()
    assert min(took_s) < WARM_START_WITHIN_S


def warm_starts(installation: Installation) -> list[float]:
    """Start until one start is quick enough: other work on the machine only makes a start slower."""
    installation.start()
    installation.stop()
    took_s: list[float] = []
    while min(took_s, default=WARM_START_WITHIN_S) >= WARM_START_WITHIN_S and len(took_s) < WARM_STARTS:
        installation.start()
        took_s.append(installation.ready_in_s)
        installation.stop()
    return took_s
