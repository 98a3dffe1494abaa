"""Trust in others, evidence for beliefs, lessons and habits: the rules as tables."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.selves.evidence import MAX_STEP, check_step, limit_confidence, revise_confidence, status_at
from arbor.selves.experiences import ExperienceOutcome, lesson, patterns
from arbor.selves.trust import impression, trust
from arbor.selves.values import BeliefStatus


@pytest.mark.parametrize(
    ("successes", "interactions", "heartbeat_number", "last", "expected"),
    [
        (0, 0, 10, 0, 0.5),
        (4, 4, 10, 10, 1.0),
        (3, 4, 10, 10, 0.75),
        (0, 3, 10, 10, 0.0),
        (4, 4, 1000, 0, math.exp(-1)),
        (1, 2, 700, 7, 0.5 * math.exp(-0.693)),
        (1, 1, 5, 9, 1.0),
    ],
)
def test_trust_is_the_success_rate_faded_over_time(
    successes: int, interactions: int, heartbeat_number: int, last: int, expected: float
) -> None:
    share = trust(
        successes=successes,
        interactions=interactions,
        heartbeat_number=heartbeat_number,
        last_heartbeat_number=last,
    )
    assert share == pytest.approx(expected)


@pytest.mark.parametrize(("old", "new", "after"), [(0.5, None, 0.5), (0.5, 1.0, 0.65), (0.5, 0.0, 0.35)])
def test_an_impression_counts_as_part_of_an_interaction(old: float, new: float | None, after: float) -> None:
    assert impression(old, new) == pytest.approx(after)


@pytest.mark.parametrize(
    ("confidence", "stability", "supports", "strength", "after"),
    [
        (0.5, 0.0, True, 1.0, 0.7),  # three to one is 0.75, and a step is 0.2
        (0.5, 0.5, True, 1.0, 0.634),
        (0.5, 0.5, False, 1.0, 0.366),
        (0.5, 1.0, False, 1.0, 0.5),
        (0.5, 0.5, False, 0.0, 0.5),
        (0.9, 0.8, False, 1.0, 0.8784),
        (1.0, 0.0, False, 1.0, 0.9423),
        (0.0, 0.0, True, 1.0, 0.0577),
        (1.0, 0.5, True, 1.0, 1.0),
        (0.0, 0.5, False, 1.0, 0.0),
    ],
)
def test_evidence_moves_a_belief_by_its_odds(
    confidence: float, stability: float, supports: bool, strength: float, after: float
) -> None:
    revised = revise_confidence(
        confidence=confidence, stability=stability, supports=supports, strength=strength
    )
    assert revised == pytest.approx(after, abs=1e-3)


@given(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.floats(0, 1))
def test_evidence_moves_a_belief_by_at_most_one_step_in_range(
    confidence: float, stability: float, supports: bool, strength: float
) -> None:
    revised = revise_confidence(
        confidence=confidence, stability=stability, supports=supports, strength=strength
    )
    assert 0 <= revised <= 1
    assert abs(revised - confidence) <= MAX_STEP + 1e-4
    assert revised >= confidence - 1e-4 if supports else revised <= confidence + 1e-4


@pytest.mark.parametrize(
    ("now", "confidence", "then"),
    [
        (BeliefStatus.HELD, 0.39, BeliefStatus.QUESTIONED),
        (BeliefStatus.HELD, 0.4, BeliefStatus.HELD),
        (BeliefStatus.QUESTIONED, 0.45, BeliefStatus.QUESTIONED),
        (BeliefStatus.QUESTIONED, 0.5, BeliefStatus.HELD),
        (BeliefStatus.DROPPED, 0.9, BeliefStatus.DROPPED),
    ],
)
def test_a_belief_below_a_bound_is_in_doubt(now: BeliefStatus, confidence: float, then: BeliefStatus) -> None:
    assert status_at(now, confidence) is then


@pytest.mark.parametrize("wanted", [0.1, 0.8, float("nan"), 1.2])
def test_one_decision_moves_a_belief_by_one_step(wanted: float) -> None:
    check_step(0.5, 0.7)
    with pytest.raises(Invalid):
        check_step(0.5, wanted)
    assert limit_confidence(0.5, 0.9) == 0.7


@pytest.mark.parametrize(
    ("outcome", "attempts", "successes", "begins"),
    [
        (ExperienceOutcome.FAILURE, 5, 5, "Avoid doing recall (the tide) the same way again: no luck"),
        (ExperienceOutcome.PARTIAL, 5, 5, "Do recall (the tide) differently next time: no luck"),
        (ExperienceOutcome.SUCCESS, 0, 0, "Do recall (the tide) again"),
        (ExperienceOutcome.SUCCESS, 5, 2, "Do recall (the tide) again"),
        (ExperienceOutcome.SUCCESS, 4, 2, ""),
        (ExperienceOutcome.UNKNOWN, 0, 0, ""),
    ],
)
def test_a_lesson_states_actions_to_repeat_and_to_avoid(
    outcome: ExperienceOutcome, attempts: int, successes: int, begins: str
) -> None:
    text = lesson(
        action="recall",
        about="the tide",
        outcome=outcome,
        summary="no luck",
        attempts=attempts,
        successes=successes,
    )
    assert text.startswith(begins)
    assert bool(text) is bool(begins)


@pytest.mark.parametrize(
    ("actions", "habits"),
    [
        ("", []),
        ("ab" * 2, []),
        ("ab" * 3, [("ab", 3)]),
        ("aaaaaaaaa", []),
        ("abcxabcyabc", [("abc", 3)]),
        ("abcdabcdabcd", [("abcd", 3)]),
        ("ab" * 3 + "x" + "abc" * 3, [("abc", 3), ("ab", 6)]),
    ],
)
def test_actions_repeated_three_times_are_a_habit(actions: str, habits: list[tuple[str, int]]) -> None:
    assert [("".join(pattern.actions), pattern.count) for pattern in patterns(list(actions))] == habits


@pytest.mark.parametrize(
    ("actions", "habits"),
    [
        ("a-b" * 3, []),
        ("ab-" * 3, [("ab", 3)]),
        ("ab-" * 3 + "a-b", [("ab", 3)]),
        ("---", []),
    ],
)
def test_a_gap_interrupts_a_habit(actions: str, habits: list[tuple[str, int]]) -> None:
    with_gaps = [None if action == "-" else action for action in actions]
    assert [("".join(pattern.actions), pattern.count) for pattern in patterns(with_gaps)] == habits


def test_a_habit_is_described_in_words() -> None:
    (habit,) = patterns(["recall", "reach_out_user"] * 3)
    assert habit.describe() == "When I act I often do this: recall, then reach out user (3 times)."
    assert (habit.key, habit.confidence) == ("reach_out_user>recall", 0.5)
