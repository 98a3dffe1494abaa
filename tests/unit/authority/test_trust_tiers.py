"""Scores of trust, and the rise and fall of tiers over simulated days."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.agents.template import TrustTier
from arbor.authority.trust_tiers import (
    GRACE,
    TIER_FLOORS,
    TIERS,
    WEIGHTS,
    Tally,
    TierStatus,
    TrustPart,
    next_tier,
    score_of,
    score_parts,
    tier_at_birth,
)

BORN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def _history(status: TierStatus, scores: Iterable[float], *, start: datetime = BORN) -> list[TierStatus]:
    """Return the status after each day with its score."""
    history = []
    for number, score in enumerate(scores):
        status = next_tier(status, score=score, records=100, breach="", now=start + number * DAY).status
        history.append(status)
    return history


def _tiers(history: list[TierStatus]) -> list[TrustTier]:
    """Return the different tiers of a history, in order."""
    return list(dict.fromkeys(status.tier for status in history))


def test_the_weights_sum_to_one() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert set(WEIGHTS) == set(TrustPart)


def test_an_agent_without_records_is_probationary() -> None:
    parts = score_parts({})
    assert score_of(parts) == 40
    assert TIER_FLOORS[TrustTier.PROBATIONARY] <= 40 < TIER_FLOORS[TrustTier.TRUSTED]
    assert [part.part for part in parts] == list(TrustPart)


@pytest.mark.parametrize(
    ("tallies", "low", "high"),
    [
        # All records good, and many: above the floor of autonomous.
        (dict.fromkeys(TrustPart, Tally(good=400, total=400)), 90, 100),
        (dict.fromkeys(TrustPart, Tally(good=0, total=400)), 0, 2),
        # Good heartbeats without any judged proposal or change of the self.
        ({part: Tally(good=200, total=200) for part in list(TrustPart)[:3]}, 75, 85),
        # A few good ones say little yet.
        ({part: Tally(good=2, total=2) for part in TrustPart}, 45, 55),
    ],
)
def test_a_score_follows_the_records(tallies: dict[TrustPart, Tally], low: float, high: float) -> None:
    assert low <= score_of(score_parts(tallies)) <= high


@given(good=st.floats(0, 1000), total=st.integers(0, 1000))
def test_a_share_is_between_zero_and_one(good: float, total: int) -> None:
    assert 0 <= Tally(good=good, total=total).share <= 1


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        ("untrusted", TrustTier.UNTRUSTED),
        ("probationary", TrustTier.PROBATIONARY),
        ("veteran", TrustTier.PROBATIONARY),
    ],
)
def test_an_agent_is_born_probationary_at_most(requested: str, expected: TrustTier) -> None:
    assert tier_at_birth(requested) is expected


def test_a_good_agent_rises_tier_by_tier_to_veteran() -> None:
    history = _history(TierStatus(tier=TrustTier.UNTRUSTED, since=BORN), [99] * 60)
    assert _tiers(history) == [
        TrustTier.UNTRUSTED,
        TrustTier.PROBATIONARY,
        TrustTier.TRUSTED,
        TrustTier.VETERAN,
    ]
    # Three days for each tier: not two at once.
    assert history[3].tier is TrustTier.PROBATIONARY
    assert history[2].tier is TrustTier.UNTRUSTED


@pytest.mark.parametrize("swing", [(49, 51), (44, 56), (60, 45)])
def test_a_score_around_a_floor_moves_nothing(swing: tuple[float, float]) -> None:
    history = _history(TierStatus(tier=TrustTier.PROBATIONARY, since=BORN), list(swing) * 50)
    assert _tiers(history) == [TrustTier.PROBATIONARY]


def test_a_risen_agent_does_not_flap() -> None:
    risen = _history(TierStatus(tier=TrustTier.PROBATIONARY, since=BORN), [52] * 10)[-1]
    history = _history(risen, [46, 54] * 50, start=BORN + 10 * DAY)
    assert _tiers(history) == [TrustTier.TRUSTED]


def test_a_low_score_lowers_the_tier_when_grace_ends() -> None:
    history = _history(TierStatus(tier=TrustTier.TRUSTED, since=BORN), [44] * 30)
    first = next(number for number, status in enumerate(history) if status.tier is not TrustTier.TRUSTED)
    assert first * DAY == GRACE
    # A score of 44 lowers no probationary agent.
    assert _tiers(history) == [TrustTier.TRUSTED, TrustTier.PROBATIONARY]


def test_a_breach_lowers_at_once_even_in_grace() -> None:
    decision = next_tier(
        TierStatus(tier=TrustTier.VETERAN, since=BORN),
        score=99,
        records=100,
        breach="a secret in a message",
        now=BORN + DAY,
    )
    assert decision.status.tier is TrustTier.TRUSTED
    assert decision.reason == "a secret in a message"


def test_a_breach_delays_the_way_up_by_a_week() -> None:
    fallen = next_tier(
        TierStatus(tier=TrustTier.TRUSTED, since=BORN), score=99, records=100, breach="forged", now=BORN
    ).status
    history = _history(fallen, [99] * 20)
    first = next(number for number, status in enumerate(history) if status.tier is TrustTier.TRUSTED)
    assert first * DAY == GRACE


def test_a_breach_restarts_the_rise_of_an_untrusted_agent() -> None:
    status = _history(TierStatus(tier=TrustTier.UNTRUSTED, since=BORN), [99, 99, 99])[-1]
    decision = next_tier(status, score=99, records=100, breach="forged", now=BORN + 3 * DAY)
    assert decision.status.tier is TrustTier.UNTRUSTED
    assert decision.status.above_since is None
    assert not decision.reason


def test_a_person_s_tier_falls_by_a_breach_alone() -> None:
    given_by_person = TierStatus(tier=TrustTier.AUTONOMOUS, since=BORN, by_person=True)
    history = _history(given_by_person, [10] * 60)
    assert _tiers(history) == [TrustTier.AUTONOMOUS]
    fallen = next_tier(history[-1], score=10, records=100, breach="forged", now=BORN + 60 * DAY).status
    assert fallen.tier is TrustTier.VETERAN
    assert not fallen.by_person


@given(
    start=st.sampled_from(TIERS[:4]),
    days=st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=60),
)
def test_tiers_move_by_one_and_never_to_autonomous(start: TrustTier, days: list[tuple[float, bool]]) -> None:
    status = TierStatus(tier=start, since=BORN)
    for number, (score, breached) in enumerate(days):
        decision = next_tier(
            status, score=score, records=100, breach="forged" * breached, now=BORN + number * DAY
        )
        step = TIERS.index(decision.status.tier) - TIERS.index(status.tier)
        assert abs(step) <= 1
        assert decision.status.tier is not TrustTier.AUTONOMOUS
        assert bool(decision.reason) == (step != 0)
        status = decision.status


def test_an_agent_that_does_little_moves_neither_way() -> None:
    status = TierStatus(tier=TrustTier.TRUSTED, since=BORN)
    for number in range(60):
        status = next_tier(status, score=40, records=19, breach="", now=BORN + number * DAY).status
    assert status.tier is TrustTier.TRUSTED
