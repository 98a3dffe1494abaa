"""The history of a self: folded to versions, undone, and compared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import NotFound
from arbor.selves.history import (
    BIRTH,
    DifferenceKind,
    PartDifference,
    PartKind,
    RecordedChange,
    SelfState,
    differences,
    fold,
    offered_versions,
    require_offered,
    unfold,
)

DRY = {"kind": "trait", "content": "dry", "strength": 0.3, "stability": 0.8, "status": "held"}


def change(version: int, target: str, before: dict[str, Any], after: dict[str, Any]) -> RecordedChange:
    return RecordedChange(version=version, what="aspect", target_id=target, before=before, after=after)


HISTORY = (
    RecordedChange(version=BIRTH, what="birth", target_id="agent", before={}, after={"aspect": {"a": DRY}}),
    change(2, "a", DRY, DRY | {"strength": 0.7}),
    change(3, "b", {}, DRY | {"content": "kind"}),
    change(4, "a", DRY | {"strength": 0.7}, DRY | {"status": "dropped"}),
)


@pytest.mark.parametrize(
    ("before", "after", "act"),
    [
        ({}, {"name": "harm", "enabled": False}, "disabled"),
        ({"name": "harm", "enabled": False}, {}, "enabled"),
        ({"name": "harm", "enabled": True}, {"name": "harm", "enabled": False}, "disabled"),
        ({}, {"name": "harm", "enabled": True}, "added"),
        ({"name": "harm", "enabled": True}, {}, "removed"),
    ],
)
def test_a_default_boundary_is_switched_off_and_on(
    before: dict[str, Any], after: dict[str, Any], act: str
) -> None:
    part = PartDifference(part=PartKind.BOUNDARY, target_id="a", before=before, after=after)
    assert part.act == act


def test_a_version_is_the_fold_of_the_changes_until_then() -> None:
    folded = {version: fold(HISTORY, until=version).of(PartKind.ASPECT) for version in (1, 2, 3, 4)}
    assert {version: sorted(rows) for version, rows in folded.items()} == {
        1: ["a"],
        2: ["a"],
        3: ["a", "b"],
        4: ["b"],
    }
    assert folded[2]["a"]["strength"] == 0.7


def test_differences_name_what_came_went_and_changed() -> None:
    found = differences(fold(HISTORY, until=1), fold(HISTORY, until=3))
    assert [(difference.difference, difference.kind, difference.name) for difference in found] == [
        (DifferenceKind.CHANGED, "trait", "dry"),
        (DifferenceKind.ADDED, "trait", "kind"),
    ]
    assert found[0].fields == {"strength": (0.3, 0.7)}
    back = differences(fold(HISTORY), fold(HISTORY, until=1))
    assert [difference.difference for difference in back] == [DifferenceKind.ADDED, DifferenceKind.REMOVED]
    assert differences(fold(HISTORY), fold(HISTORY, until=1), parts=[PartKind.BELIEF]) == ()


def test_records_without_a_strength_do_not_differ_by_it() -> None:
    old = {name: value for name, value in DRY.items() if name != "strength"}
    states = (SelfState(parts={PartKind.ASPECT: {"a": values}}) for values in (old, DRY))
    assert differences(*states) == ()


def test_values_that_were_beliefs_are_no_beliefs_of_earlier_versions() -> None:
    belief = {"statement": "candor", "category": "values", "status": "held"}
    birth = RecordedChange(
        version=BIRTH, what="birth", target_id="agent", before={}, after={"belief": {"b": belief}}
    )
    assert fold([birth]).of(PartKind.BELIEF) == {}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.floats(0, 1))), max_size=12))
def test_undoing_all_changes_leads_to_the_birth(acts: list[tuple[str, float | None]]) -> None:
    rows: dict[str, dict[str, Any]] = {"a": DRY}
    birth, changes = dict(rows), []
    for number, (target, strength) in enumerate(acts, start=2):
        before = rows.get(target, {})
        after = {} if strength is None else DRY | {"strength": strength}
        changes.append(change(number, target, before, after))
        rows.pop(target, None)
        if after:
            rows[target] = after
    now = SelfState(parts={PartKind.ASPECT: rows})
    assert unfold(now, changes).of(PartKind.ASPECT) == birth
    record = RecordedChange(version=BIRTH, what="birth", target_id="x", before={}, after={"aspect": birth})
    assert fold([record, *changes]).of(PartKind.ASPECT) == rows


def test_ten_versions_and_the_birth_are_offered() -> None:
    assert offered_versions(1) == (1,)
    assert offered_versions(10) == tuple(range(10, 0, -1))
    assert offered_versions(14) == (*range(14, 4, -1), 1)
    assert require_offered(1, latest=14) == 1
    with pytest.raises(NotFound, match=r"there are 1 \(its birth\) and 5 to 14"):
        require_offered(4, latest=14)
    with pytest.raises(NotFound, match="there are 1 to 3"):
        require_offered(4, latest=3)
    with pytest.raises(NotFound, match=r"there is only 1$"):
        require_offered(2, latest=1)
