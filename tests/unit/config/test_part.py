"""The rule for starting a part again."""

from __future__ import annotations

import pytest

from config.supervisor.managed_process import restart_delay_s


@pytest.mark.parametrize(
    ("quick_ends", "delay_s"),
    [(0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0), (6, 16.0), (7, 30.0), (10_000, 30.0)],
)
def test_the_delay_doubles_up_to_half_a_minute(quick_ends: int, delay_s: float) -> None:
    assert restart_delay_s(quick_ends) == delay_s
