"""Delays after legs that have raised."""

from __future__ import annotations

import pytest

from arbor.workflows.values import delay_after_failed_legs


@pytest.mark.parametrize(
    ("failures", "seconds"), [(1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (30_000, 300)]
)
def test_the_delay_doubles_up_to_five_minutes(failures: int, seconds: int) -> None:
    assert delay_after_failed_legs(failures).total_seconds() == seconds
