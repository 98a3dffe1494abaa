"""New ids for the rows of a seed."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from arbor.ids import uuid7
from arbor.seeds.id_mapping import IdMapping

OLD, NEW = uuid7(), uuid7()
OWN, FOREIGN = uuid7(), uuid7()


def mapping(*own: UUID) -> IdMapping:
    return IdMapping(
        own={row_id.bytes for row_id in own or (OWN,)}, agent=(OLD, NEW), texts={"agent_aa": "agent_bb"}
    )


def test_own_ids_are_replaced_wherever_they_are() -> None:
    own = str(mapping().id_of(OWN))

    applied = mapping().apply(
        {"a": [f"memory:{OWN}", 3, None], str(OWN): {"agent": str(OLD), "by": "agent_aa"}}
    )

    assert applied == {"a": [f"memory:{own}", 3, None], own: {"agent": str(NEW), "by": "agent_bb"}}
    assert own != str(OWN)


def test_ids_of_others_stay() -> None:
    applied = mapping().apply({"text": f"peer {FOREIGN}, {OWN}!"})

    assert applied == {"text": f"peer {FOREIGN}, {mapping().id_of(OWN)}!"}


@given(st.lists(st.uuids(), min_size=2, unique=True))
def test_new_ids_are_distinct_and_of_version_7(ids: list[UUID]) -> None:
    new = [mapping(*ids).id_of(row_id) for row_id in ids]

    assert len(set(new)) == len(ids)
    assert all(row_id.version == 7 for row_id in new)
    assert [row_id.int >> 80 for row_id in new] == [row_id.int >> 80 for row_id in ids]


def test_new_ids_sort_like_the_old_ones() -> None:
    ids = [uuid7() for _ in range(50)]
    new = [mapping(*ids).id_of(row_id) for row_id in ids]

    assert new == sorted(new)
