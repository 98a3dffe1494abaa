"""Neighborhoods: the weights of seed 004, and the nearest by meaning found in blocks."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.neighborhood import (
    HIGHEST_WEIGHT,
    NEIGHBORHOOD_SIZE,
    NearestSearch,
    neighbor_weight,
    neighborhood,
    similar_enough,
    would_enter,
)

IDS = [UUID(int=number) for number in range(1, 61)]

hops = st.dictionaries(st.sampled_from(IDS), st.sampled_from([1, 2]))
similar = st.dictionaries(st.sampled_from(IDS), st.floats(0.75, 1), max_size=10)
beside = st.sets(st.sampled_from(IDS), max_size=6)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, 0.0),
        ({"hops": 1}, 1.0),
        ({"hops": 2}, 0.5),
        ({"hops": 3}, 0.0),
        ({"similarity": 0.8}, 0.4),
        ({"beside": True}, 0.3),
        ({"hops": 2, "similarity": 0.8}, 0.9),
        ({"hops": 1, "similarity": 1.0}, 1.5),
        ({"hops": 1, "similarity": 1.0, "beside": True}, 1.8),
    ],
)
def test_the_weight_of_a_neighbor_follows_the_seed(parts: dict[str, float], expected: float) -> None:
    assert neighbor_weight(**parts) == pytest.approx(expected)  # type: ignore[arg-type]


@given(hops=hops, similar=similar, beside=beside)
def test_a_neighborhood_contains_the_heaviest_in_order(
    hops: dict[UUID, int], similar: dict[UUID, float], beside: set[UUID]
) -> None:
    neighbors = neighborhood(hops=hops, similar=similar, beside=beside)
    everyone = {*hops, *similar, *beside}
    assert len(neighbors) == min(NEIGHBORHOOD_SIZE, len(everyone))
    assert list(neighbors.values()) == sorted(neighbors.values(), reverse=True)
    assert all(0 < weight <= HIGHEST_WEIGHT for weight in neighbors.values())
    left_out = everyone - set(neighbors)
    for memory_id in left_out:
        worth = neighbor_weight(
            hops=hops.get(memory_id), similarity=similar.get(memory_id), beside=memory_id in beside
        )
        assert worth <= min(neighbors.values())
        assert not would_enter(neighbors.values(), worth)


def test_a_newcomer_replaces_only_a_lighter_neighbor() -> None:
    full = [0.5] * NEIGHBORHOOD_SIZE
    assert would_enter([], 0.3)
    assert not would_enter([], 0.0)
    assert would_enter(full, 0.6)
    assert not would_enter(full, 0.5)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 12), st.integers(0, 2**32 - 1), st.booleans())
def test_block_search_equals_brute_force(count: int, block: int, most: int, seed: int, doubled: bool) -> None:
    chance = np.random.default_rng(seed)
    vectors = chance.normal(size=(count, 8)).astype(np.float32)
    if doubled:
        vectors[count // 2 :] = vectors[: count - count // 2]
    queries = IDS[: max(1, count // 2)]
    search = NearestSearch(queries, vectors[: len(queries)], limit=most)
    for start in range(0, count, block):
        search.compare_block(IDS[start : min(start + block, count)], vectors[start : start + block])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for place, memory_id in enumerate(queries):
        cosines = np.round(unit @ unit[place], 4)
        others = sorted((-float(cosines[other]), IDS[other]) for other in range(count) if other != place)
        neighbors = search.found()[memory_id]
        assert memory_id not in neighbors
        assert list(neighbors.values()) == pytest.approx([-cosine for cosine, _ in others[:most]], abs=2e-4)


def test_a_memory_without_direction_is_near_to_nothing() -> None:
    search = NearestSearch(IDS[:1], np.zeros((1, 4), dtype=np.float32))
    search.compare_block(IDS[:3], np.eye(3, 4, dtype=np.float32))
    assert similar_enough(search.found()[IDS[0]], 0.75) == {}


def test_only_near_memories_are_neighbors() -> None:
    assert similar_enough({IDS[0]: 0.76, IDS[1]: 0.75}, 0.75) == {IDS[0]: 0.76}
