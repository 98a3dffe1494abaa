"""Differences of two seeds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from arbor.seeds.diff import RowChange, diff_rows
from arbor.seeds.reading import SeedRow

ROWS = st.dictionaries(st.integers(0, 30), st.sampled_from(["a", "b", "c"]))


def rows(section: str, *values: dict[str, Any]) -> list[SeedRow]:
    return [SeedRow(section=section, values=row, vectors={}) for row in values]


def memories(contents: dict[int, str]) -> list[SeedRow]:
    return rows("memories", *({"id": str(number), "content": text} for number, text in contents.items()))


@given(ROWS, ROWS)
def test_rows_are_counted_by_their_change(before: dict[int, str], after: dict[int, str]) -> None:
    sections = diff_rows(lambda: memories(before), lambda: memories(after), same_agent=True)

    both = before.keys() & after.keys()
    changed = {number for number in both if before[number] != after[number]}
    expected = (len(after.keys() - both), len(before.keys() - both), len(changed), len(both - changed))
    counted = [(found.added, found.removed, found.changed, found.same) for found in sections]
    assert counted == ([expected] if before or after else [])
    for section in sections:
        kinds = [example.change for example in section.examples]
        if sum(expected[:3]) <= 20:
            assert [kinds.count(kind) for kind in RowChange] == list(expected[:3])


def test_a_changed_row_has_its_values_before_and_after() -> None:
    (section,) = diff_rows(
        lambda: rows("goals", {"id": "1", "title": "Map", "state": "active"}),
        lambda: rows("goals", {"id": "1", "title": "Map", "state": "completed"}),
        same_agent=True,
    )

    assert section.examples[0].fields == {"state": ("active", "completed")}
    assert section.examples[0].label == "Map"


def test_rows_of_two_agents_are_compared_by_their_texts() -> None:
    own = {"content": "It froze.", "type": "semantic", "session": "", "position": 0}
    (section,) = diff_rows(
        lambda: rows("memories", {**own, "id": "1", "episode_id": "5"}),
        lambda: rows(
            "memories", {**own, "id": "2", "episode_id": "6"}, {**own, "id": "3", "content": "It rained."}
        ),
        same_agent=False,
    )

    assert (section.added, section.removed, section.changed, section.same) == (1, 0, 0, 1)


def test_rows_of_two_agents_without_texts_are_left_out() -> None:
    assert diff_rows(lambda: rows("accesses", {"memory_id": "1"}), list, same_agent=False) == ()


def test_rows_of_equal_texts_are_compared_one_by_one() -> None:
    rests = [{"id": str(number), "title": "Rest", "state": "completed"} for number in range(3)]
    (section,) = diff_rows(lambda: rows("goals", *rests[:2]), lambda: rows("goals", *rests), same_agent=False)

    assert (section.added, section.removed, section.changed, section.same) == (1, 0, 0, 2)
    assert [example.change for example in section.examples] == [RowChange.ADDED]
