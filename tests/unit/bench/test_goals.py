"""The benchmark of goal prioritization measures what every heartbeat does."""

from __future__ import annotations

import pytest

from bench.goals import BAR_MS, measure


@pytest.mark.bar
def test_a_full_backlog_is_put_in_order_within_its_bar() -> None:
    figures = measure(rounds=20)
    assert figures["goals"] == 50
    assert 0 < figures["p50_ms"] < BAR_MS
