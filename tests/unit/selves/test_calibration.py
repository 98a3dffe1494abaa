"""Judged proposals, and the thresholds that they move."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.selves.calibration import (
    MAX_MOVED,
    MIN_JUDGED,
    THRESHOLDS,
    Calibration,
    ProposalJudgment,
    judge,
    threshold_of,
)
from arbor.selves.proposals import ProposalKind

OLD, YOUNG = timedelta(days=14), timedelta(days=13)


@pytest.mark.parametrize(
    ("age", "gone", "contradicted", "confirmed", "expected"),
    [
        (OLD, False, False, True, ProposalJudgment.RIGHT),
        (YOUNG, False, False, True, ProposalJudgment.OPEN),
        (OLD, False, False, False, ProposalJudgment.OPEN),
        (YOUNG, True, False, True, ProposalJudgment.WRONG),
        (YOUNG, False, True, False, ProposalJudgment.WRONG),
        # Evidence on both sides: the agent kept it.
        (OLD, False, True, True, ProposalJudgment.RIGHT),
    ],
)
def test_an_accepted_proposal_is_judged(
    age: timedelta, gone: bool, contradicted: bool, confirmed: bool, expected: ProposalJudgment
) -> None:
    assert judge(age=age, gone=gone, contradicted=contradicted, confirmed=confirmed) is expected


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "expected"),
    [
        (ProposalKind.INSIGHT, 0, 0, 0.5),
        (ProposalKind.INSIGHT, 9, 0, 0.5),
        (ProposalKind.INSIGHT, 10, 0, 0.4),
        (ProposalKind.INSIGHT, 5, 5, 0.5),
        (ProposalKind.INSIGHT, 0, 10, 0.6),
        (ProposalKind.PRECONSCIOUS, 15, 5, 0.35),
        # A fact must have been confirmed, however often earlier ones proved right.
        (ProposalKind.BELIEF, 50, 0, 0.75),
        (ProposalKind.BELIEF, 0, 50, 0.85),
        (ProposalKind.IDENTITY, 2, 8, 0.81),
    ],
)
def test_the_share_moves_the_threshold(kind: ProposalKind, right: int, wrong: int, expected: float) -> None:
    assert threshold_of(kind, Calibration(right=right, wrong=wrong)) == pytest.approx(expected)


def test_a_preference_has_no_threshold() -> None:
    assert threshold_of(ProposalKind.PREFERENCE, Calibration(right=10)) is None


@given(
    kind=st.sampled_from(sorted(THRESHOLDS)),
    right=st.integers(0, 50),
    wrong=st.integers(0, 50),
    rejected=st.integers(0, 50),
)
def test_a_threshold_stays_within_its_bounds(
    kind: ProposalKind, right: int, wrong: int, rejected: int
) -> None:
    threshold = THRESHOLDS[kind]
    value = threshold_of(kind, Calibration(right=right, wrong=wrong, rejected=rejected))
    assert value is not None
    assert threshold.least <= value <= threshold.most
    assert abs(value - threshold.base) <= MAX_MOVED + 1e-9
    # More wrong ones never make promotion easier.
    worse = threshold_of(kind, Calibration(right=right, wrong=wrong + MIN_JUDGED))
    assert worse is not None
    assert worse >= value or right + wrong < MIN_JUDGED


def test_rejections_are_neither_right_nor_wrong() -> None:
    assert threshold_of(ProposalKind.INSIGHT, Calibration(rejected=50)) == 0.5
    assert Calibration(rejected=50).share is None
