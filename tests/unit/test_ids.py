"""Row identifiers."""

from __future__ import annotations

import time
from uuid import UUID

import pytest

from arbor.ids import read_id, uuid7


def test_ids_made_in_order_sort_in_order() -> None:
    ids = [uuid7() for _ in range(5_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_an_id_is_a_uuid_of_version_7_with_its_time() -> None:
    row_id = uuid7()
    assert row_id.version == 7
    assert abs((row_id.int >> 80) - time.time_ns() // 1_000_000) < 60_000


@pytest.mark.parametrize(
    ("text", "read"),
    [(str(UUID(int=7)), UUID(int=7)), (UUID(int=7), UUID(int=7)), (None, None), ("", None), ("goal 7", None)],
)
def test_an_id_is_read_and_any_other_text_is_none(text: str | UUID | None, read: UUID | None) -> None:
    assert read_id(text) == read
