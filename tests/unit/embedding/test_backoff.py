"""A failing embedder is asked ever more rarely, but never given up."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.embedding.backoff import LONGEST_REST, rest_after


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(-1, 0), (0, 0), (1, 10), (2, 20), (3, 40), (4, 80), (6, 320), (7, 600), (10**9, 600)],
)
def test_rests_double_up_to_ten_minutes(failures: int, seconds: int) -> None:
    assert rest_after(failures) == timedelta(seconds=seconds)


@given(st.integers(min_value=0, max_value=10**6))
def test_no_rest_is_shorter_than_the_one_before_or_longer_than_the_longest(failures: int) -> None:
    assert rest_after(failures) <= rest_after(failures + 1) <= LONGEST_REST
