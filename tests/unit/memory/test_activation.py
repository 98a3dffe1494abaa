"""Activation: its decay, and its spread from recalled memories."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.memory.activation import (
    CAP,
    FLOOR,
    SPREAD,
    fading_time,
    initial_levels,
    level_after,
    levels_after,
    spread,
)
from arbor.memory.neighborhood import HIGHEST_WEIGHT

HOUR = timedelta(hours=1)
IDS = [UUID(int=number) for number in range(1, 13)]
levels = st.dictionaries(st.sampled_from(IDS), st.floats(0, 1), max_size=8)
neighbor_weights = st.dictionaries(st.sampled_from(IDS), st.floats(0, HIGHEST_WEIGHT), max_size=8)


@pytest.mark.parametrize(("hours", "left"), [(0, 0.8), (1, 0.4), (2, 0.2), (-5, 0.8), (1_000_000, 0.0)])
def test_half_of_a_level_is_left_after_each_half_life(hours: float, left: float) -> None:
    assert level_after(0.8, timedelta(hours=hours), HOUR) == pytest.approx(left)


@given(st.floats(0, 1), st.timedeltas(timedelta(0), timedelta(days=400)), st.timedeltas(timedelta(seconds=1)))
def test_a_level_only_falls(level: float, elapsed: timedelta, half_life: timedelta) -> None:
    assert 0 <= level_after(level, elapsed, half_life) <= level


@given(
    st.lists(st.tuples(st.floats(0, 1), st.timedeltas(timedelta(days=-9), timedelta(days=9000)))),
    st.timedeltas(timedelta(seconds=1), timedelta(days=400)),
)
def test_many_levels_fade_like_single_ones(
    fading: list[tuple[float, timedelta]], half_life: timedelta
) -> None:
    elapsed = [since // timedelta(microseconds=1) for _, since in fading]
    left = levels_after(
        np.array([level for level, _ in fading]), np.array(elapsed, dtype=np.int64), half_life
    ).tolist()
    one_by_one = [level_after(level, since, half_life) for level, since in fading]
    for many, single in zip(left, one_by_one, strict=True):
        assert many == pytest.approx(single) or (many == 0 and single <= FLOOR)


def test_activation_ends_at_the_floor_when_it_has_faded() -> None:
    assert level_after(CAP, fading_time(HOUR), HOUR) == pytest.approx(FLOOR)


def test_the_best_recalled_memory_is_fully_activated() -> None:
    assert initial_levels({IDS[0]: 2.0, IDS[1]: 0.5, IDS[2]: -1.0}) == {
        IDS[0]: 1.0,
        IDS[1]: 0.25,
        IDS[2]: 0.0,
    }
    assert initial_levels({IDS[0]: 0.0, IDS[1]: 0.0}) == {IDS[0]: 1.0, IDS[1]: 1.0}
    assert initial_levels({}) == {}


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_refused(score: float) -> None:
    with pytest.raises(Invalid, match="finite"):
        initial_levels({IDS[0]: score})


def test_activation_spreads_to_neighbors_by_their_weights() -> None:
    spread_levels = spread(
        {IDS[0]: 0.8}, {IDS[0]: {IDS[1]: HIGHEST_WEIGHT, IDS[2]: HIGHEST_WEIGHT / 4, IDS[3]: 0.01}}
    )
    assert spread_levels == pytest.approx({IDS[0]: 0.8, IDS[1]: 0.8 * SPREAD, IDS[2]: 0.1})


@given(levels, st.dictionaries(st.sampled_from(IDS), neighbor_weights))
def test_spreading_is_bounded_and_lowers_no_activation(
    levels: dict[UUID, float], neighborhoods: dict[UUID, dict[UUID, float]]
) -> None:
    spread_levels = spread(levels, neighborhoods)
    assert all(FLOOR <= level <= CAP for level in spread_levels.values())
    assert all(spread_levels[memory_id] >= level for memory_id, level in levels.items() if level >= FLOOR)
