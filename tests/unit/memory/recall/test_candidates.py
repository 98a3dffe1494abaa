"""Ids of candidates: numbers, and halves of 64 bits."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from arbor.memory.recall.candidates import id_halves, id_numbers, ids_of_halves


@given(ids=st.lists(st.sampled_from([UUID(int=0), UUID(int=5), UUID(int=2**70)]), min_size=1, max_size=9))
def test_equal_ids_have_equal_numbers_and_the_zero_id_minus_1(ids: list[UUID]) -> None:
    numbers = id_numbers(id_halves(ids)).tolist()
    assert [number == -1 for number in numbers] == [memory_id == UUID(int=0) for memory_id in ids]
    assert len(set(zip(ids, numbers, strict=True))) == len(set(ids)) == len(set(numbers))


@given(ids=st.lists(st.uuids(), max_size=20))
def test_halves_preserve_the_order_of_ids(ids: list[UUID]) -> None:
    assert ids_of_halves(id_halves(ids)) == ids
    assert sorted(map(tuple, id_halves(ids).tolist())) == [
        tuple(row) for row in id_halves(sorted(ids)).tolist()
    ]
