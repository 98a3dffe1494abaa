"""A snapshot sees exactly the transactions that were committed before."""

from __future__ import annotations

import pytest

from arbor.memory.mind.rows import Snapshot


@pytest.mark.parametrize(
    ("revision", "visible"), [(0, True), (99, True), (100, False), (101, True), (104, False), (110, False)]
)
def test_running_and_later_transactions_are_invisible(revision: int, visible: bool) -> None:
    assert Snapshot.parse("100:110:100,104", own=None).saw(revision) is visible


def test_the_readers_own_transaction_had_not_ended() -> None:
    assert Snapshot.parse("100:110:", own=None).saw(105)
    assert not Snapshot.parse("100:110:", own=105).saw(105)


@pytest.mark.parametrize("own", [90, 110, 120])
def test_an_own_transaction_outside_the_bounds_is_not_seen_either(own: int) -> None:
    snapshot = Snapshot.parse("100:110:104", own=own)
    assert not snapshot.saw(own)
    assert snapshot.saw(103)
    assert not snapshot.saw(104)
    # What is asked for begins here.
    assert snapshot.since <= own
