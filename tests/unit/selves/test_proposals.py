"""Proposals about the self: duplicates, limits and transitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    proposals_to_evict,
    transition,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Row:
    content: str = "I am patient."
    kind: str = "identity"
    confidence: float = 0.7
    created_at: datetime = NOW
    change: Mapping[str, Any] = field(default_factory=dict)


def new_proposal(**changes: Any) -> NewProposal:
    return NewProposal(
        **{
            "kind": ProposalKind.IDENTITY,
            "content": "I am patient.",
            "confidence": 0.7,
            "source": "heartbeat:1",
            **changes,
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
    assert (duplicate_of(new_proposal(), [Row(content="Another."), row]) is row) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("I am patient.", "I am impatient.", False),
        ("I trust strangers.", "I distrust strangers.", False),
        ("I am patient with tides.", "I am not patient with tides.", False),
        ("I can wait for the tide.", "I can't wait for the tide.", False),
        ("I am patient with tides.", "I am patient with tiles.", False),
        ("I am patient with tides.", "I am patient with the tides!", True),
        ("I am patient with tides.", "I am very patient with tides.", True),
        ("I never lie to keepers.", "I never lie to the keepers", True),
    ],
)
def test_opposites_are_two_proposals(one: str, other: str, same: bool) -> None:
    row = Row(content=one)
    assert (duplicate_of(new_proposal(content=other), [row]) is row) is same
    assert (duplicate_of(new_proposal(content=one), [Row(content=other)]) is not None) is same


_HABIT = "When I act I often do this: recall, then {} (3 times)."


@pytest.mark.parametrize(
    ("kind", "contents", "changes", "same"),
    [
        ("pattern", (_HABIT.format("reflect"), _HABIT.format("reflects")), ("a>b", "a>c"), False),
        ("pattern", (_HABIT.format("reflect"), "What works for me."), ("a>b", "a>b"), True),
        (
            "insight",
            ("My memories gather around tides.", "My memories gather around tide."),
            ("1", "2"),
            False,
        ),
        ("insight", ("My memories gather around tides.", "They gather around eels."), ("1", "1"), True),
        ("preconscious", ("This: the ice.", "This: the ice!"), ("1", "2"), False),
        ("belief", ("Be surer.", "Be surer!"), ("1", "2"), False),
    ],
)
def test_proposals_are_compared_by_their_change(
    kind: str, contents: tuple[str, str], changes: tuple[str, str], same: bool
) -> None:
    key = {"pattern": "pattern", "insight": "cluster"}.get(kind, kind)
    row = Row(kind=kind, content=contents[0], change={key: changes[0]})
    proposal = new_proposal(kind=ProposalKind(kind), content=contents[1], change={key: changes[1]})
    assert (duplicate_of(proposal, [row]) is row) is same


@pytest.mark.parametrize(
    ("content", "change", "same"),
    [
        ("patient", {"aspect": "trait", "tendency": "trait:patient:2"}, True),
        ("Patient", {"aspect": "trait"}, True),
        ("patient", {"aspect": "value"}, False),
        ("patient", {"aspect": "self_concept"}, False),
        ("impatient", {"aspect": "trait"}, False),
    ],
)
def test_one_proposal_about_a_trait_waits_at_a_time(content: str, change: dict[str, Any], same: bool) -> None:
    row = Row(kind="identity", content="patient", change={"aspect": "trait", "tendency": "trait:patient:1"})
    proposal = new_proposal(kind=ProposalKind.IDENTITY, content=content, change=change)
    assert (duplicate_of(proposal, [row]) is row) is same


@pytest.mark.parametrize(
    ("key", "value", "same"),
    [
        ("tone", "short sentences", True),
        ("tone", "long sentences", False),
        ("time", "short sentences", False),
    ],
)
def test_preferences_are_compared_by_key_and_value(key: str, value: str, same: bool) -> None:
    row = Row(kind="preference", content="tone: short", change={"key": "tone", "value": "short sentences"})
    proposal = new_proposal(
        kind=ProposalKind.PREFERENCE, content="tone: short", change={"key": key, "value": value}
    )
    assert (duplicate_of(proposal, [row]) is row) is same


def test_a_full_queue_expires_the_oldest_of_the_least_sure() -> None:
    weak = Row(confidence=0.2, created_at=NOW - timedelta(days=1))
    weak_and_newer = Row(confidence=0.2)
    rows = [Row() for _ in range(MAX_PENDING - 2)] + [weak_and_newer, weak]
    assert proposals_to_evict(rows) == [weak]
    assert proposals_to_evict(rows[:-1]) == []


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


@pytest.mark.parametrize(
    "status", [status for status in ProposalStatus if status is not ProposalStatus.PENDING]
)
@pytest.mark.parametrize("to", list(ProposalStatus))
def test_a_decided_proposal_cannot_change_its_status(status: ProposalStatus, to: ProposalStatus) -> None:
    with pytest.raises(TransitionIllegal):
        transition(status, to)


@pytest.mark.parametrize(
    "wrong",
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
def test_an_invalid_proposal_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        new_proposal(**wrong)
