"""Delays before a failing embedder is retried."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.embedding.backoff import LONGEST_RETRY_DELAY, embedder_retry_delay


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(-1, 0), (0, 0), (1, 10), (2, 20), (3, 40), (4, 80), (6, 320), (7, 600), (10**9, 600)],
)
def test_delays_double_up_to_ten_minutes(failures: int, seconds: int) -> None:
    assert embedder_retry_delay(failures) == timedelta(seconds=seconds)


@given(st.integers(min_value=0, max_value=10**6))
def test_delays_never_decrease_and_are_bounded(failures: int) -> None:
    assert embedder_retry_delay(failures) <= embedder_retry_delay(failures + 1) <= LONGEST_RETRY_DELAY
