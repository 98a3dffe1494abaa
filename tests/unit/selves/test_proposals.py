"""Proposals about the self: duplicates, limits and transitions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid, LimitReached, TransitionIllegal
from arbor.selves.proposals import (
    MAX_PENDING,
    NewProposal,
    ProposalKind,
    ProposalStatus,
    check_pace,
    duplicate_of,
    jaro_winkler,
    to_expire,
    transition,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Row:
    content: str = "I am patient."
    kind: str = "identity"
    confidence: float = 0.7
    created_at: datetime = NOW


def new(**given: Any) -> NewProposal:
    return NewProposal(
        **{
            "kind": ProposalKind.IDENTITY,
            "content": "I am patient.",
            "confidence": 0.7,
            "source": "heartbeat:1",
            **given,
        }
    )


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("MARTHA", "MARHTA", 0.9611),
        ("DIXON", "DICKSONX", 0.8133),
        ("DWAYNE", "DUANE", 0.84),
        ("", "", 1.0),
        ("", "a", 0.0),
        ("abc", "xyz", 0.0),
        ("I am  Patient", "i am patient", 1.0),
        # A common beginning counts only where the rest is alike.
        ("map of the bay", "mould in jars", 0.5139),
    ],
)
def test_similarity_is_that_of_jaro_and_winkler(one: str, other: str, alike: float) -> None:
    assert jaro_winkler(one, other) == pytest.approx(alike, abs=1e-4)


@given(st.text(max_size=40), st.text(max_size=40))
def test_similarity_is_between_zero_and_one(one: str, other: str) -> None:
    assert 0 <= jaro_winkler(one, other) <= 1 + 1e-9
    assert jaro_winkler(one, one) == 1


@pytest.mark.parametrize(
    ("row", "same"),
    [
        (Row(), True),
        (Row(content="I am patient!"), True),
        (Row(kind="fact"), False),
        (Row(content="The river freezes in March."), False),
    ],
)
def test_a_proposal_with_the_same_statement_is_a_duplicate(row: Row, same: bool) -> None:
    assert (duplicate_of(new(), [Row(content="Another."), row]) is row) is same


def test_a_full_queue_expires_the_oldest_of_the_least_sure() -> None:
    weak = Row(confidence=0.2, created_at=NOW - timedelta(days=1))
    weak_and_newer = Row(confidence=0.2)
    rows = [Row() for _ in range(MAX_PENDING - 2)] + [weak_and_newer, weak]
    assert to_expire(rows) == [weak]
    assert to_expire(rows[:-1]) == []


@pytest.mark.parametrize(
    ("ages_h", "possible"),
    [
        ([], True),
        ([3.9], False),
        ([4.1], True),
        ([5, 10, 23], False),
        ([5, 10, 25], True),
        ([30, 40, 50], True),
    ],
)
def test_identity_changes_are_limited_in_pace(ages_h: list[float], possible: bool) -> None:
    changes = [NOW - timedelta(hours=age) for age in ages_h]
    if possible:
        check_pace(changes, changes, NOW)
    else:
        with pytest.raises(LimitReached):
            check_pace(changes, changes, NOW)


@pytest.mark.parametrize("status", [s for s in ProposalStatus if s is not ProposalStatus.PENDING])
@pytest.mark.parametrize("to", list(ProposalStatus))
def test_a_decided_proposal_cannot_change_its_status(status: ProposalStatus, to: ProposalStatus) -> None:
    with pytest.raises(TransitionIllegal):
        transition(status, to)


@pytest.mark.parametrize(
    "given",
    [
        {"content": ""},
        {"content": "a\0b"},
        {"content": "x" * 1001},
        {"confidence": float("nan")},
        {"confidence": 1.1},
        {"evidence": ["1"] * 21},
        {"source": ""},
    ],
)
def test_an_invalid_proposal_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        new(**given)
