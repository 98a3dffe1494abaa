"""Goals as values: transitions, titles, limits and valence."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import AlreadyExists, Invalid, LimitReached, TransitionIllegal
from arbor.goals.values import (
    FEELING_OF_FAILED_STEP,
    FEELING_OF_PROGRESS,
    MAX_ACTIVE,
    MAX_OPEN,
    MAX_QUEUED,
    BacklogCounts,
    GoalSource,
    GoalState,
    admitted_state,
    as_title,
    default_state,
    feeling_word,
    move,
    move_feeling,
    require_room,
    text_key,
)

A, Q, B, C, X = (
    GoalState.ACTIVE,
    GoalState.QUEUED,
    GoalState.BACKBURNER,
    GoalState.COMPLETED,
    GoalState.ABANDONED,
)
LEGAL = {(B, Q), (Q, B), (Q, A), (A, Q), (A, C), (A, X), (Q, X), (B, X)}


@pytest.mark.parametrize(("state", "to"), list(product(GoalState, GoalState)))
def test_a_goal_moves_only_along_the_table(state: GoalState, to: GoalState) -> None:
    if (state, to) in LEGAL:
        assert move(state, to) is to
    else:
        with pytest.raises(TransitionIllegal):
            move(state, to)


def test_an_illegal_move_names_the_possible_ones() -> None:
    with pytest.raises(
        TransitionIllegal, match=r"^a goal that is backburner can become queued, abandoned, not active$"
    ):
        move(B, A)
    with pytest.raises(TransitionIllegal, match="stays completed; make a new goal"):
        move(C, A)


@pytest.mark.parametrize(
    ("source", "parent", "expected"),
    [
        (GoalSource.USER_REQUEST, None, A),
        (GoalSource.CURIOSITY, None, Q),
        (GoalSource.IDENTITY, None, Q),
        (GoalSource.EXTERNAL, None, Q),
        (GoalSource.SURVIVAL, None, A),
        (GoalSource.ROLE, None, A),
        (GoalSource.OPPORTUNITY, None, Q),
        (GoalSource.SOCIAL, None, Q),
        (GoalSource.DERIVED, None, Q),
        (GoalSource.DERIVED, A, A),
        (GoalSource.DERIVED, B, B),
        (GoalSource.DERIVED, C, Q),
        (GoalSource.CURIOSITY, A, Q),
    ],
)
def test_a_new_goal_starts_in_the_state_of_its_source(
    source: GoalSource, parent: GoalState | None, expected: GoalState
) -> None:
    assert default_state(source, parent) is expected


@pytest.mark.parametrize(
    ("wanted", "counts", "expected"),
    [
        (A, BacklogCounts(), A),
        (A, BacklogCounts(active=MAX_ACTIVE - 1), A),
        (A, BacklogCounts(active=MAX_ACTIVE), Q),
        (A, BacklogCounts(active=MAX_ACTIVE, queued=MAX_QUEUED), B),
        (Q, BacklogCounts(queued=MAX_QUEUED - 1), Q),
        (Q, BacklogCounts(queued=MAX_QUEUED), B),
        (B, BacklogCounts(backburner=40), B),
    ],
)
def test_a_new_goal_gets_the_highest_state_with_room(
    wanted: GoalState, counts: BacklogCounts, expected: GoalState
) -> None:
    assert admitted_state("Learn", wanted, counts=counts, open_titles=[]) is expected


@pytest.mark.parametrize(
    "title", ["map the harbour", "  Map the harbour ", "MAP THE  HARBOUR", "Map\tthe\nharbour"]
)
def test_a_title_that_an_open_goal_has_is_refused(title: str) -> None:
    with pytest.raises(AlreadyExists, match="open goal called"):
        admitted_state(title, Q, counts=BacklogCounts(active=1), open_titles=["Map the harbour"])


@pytest.mark.parametrize("title", ["a\x1b[31mred\x07", "one\ntwo", "a\tb", "a\x9bb", "a\u2028b", "a\u202eb"])
def test_a_title_is_one_line_without_control_codes(title: str) -> None:
    with pytest.raises(Invalid, match="a goal's title is one line without control characters"):
        admitted_state(title, Q, counts=BacklogCounts(), open_titles=[])


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("a\x1b[31mred\x07", "a [31mred"),
        (" one\n two ", "one two"),
        ("Karte für עברית", "Karte für עברית"),
        ("\x1b", ""),
    ],
)
def test_any_text_yields_a_valid_title(text: str, title: str) -> None:
    assert as_title(text) == title


def test_a_full_backlog_refuses_further_goals() -> None:
    counts = BacklogCounts(active=3, queued=10, backburner=MAX_OPEN - 13)

    with pytest.raises(LimitReached, match="at most 50 goals are open"):
        admitted_state("One more", B, counts=counts, open_titles=[])


@pytest.mark.parametrize("wanted", [C, X])
def test_no_goal_begins_in_a_final_state(wanted: GoalState) -> None:
    with pytest.raises(TransitionIllegal, match="a new goal is active, queued or backburner"):
        admitted_state("Won already", wanted, counts=BacklogCounts(), open_titles=[])


@pytest.mark.parametrize(
    ("to", "counts", "fits"),
    [
        (A, BacklogCounts(active=2), True),
        (A, BacklogCounts(active=3), False),
        (Q, BacklogCounts(queued=9), True),
        (Q, BacklogCounts(queued=10), False),
        (B, BacklogCounts(active=3, queued=10, backburner=37), True),
        (C, BacklogCounts(active=3, queued=10), True),
        (X, BacklogCounts(active=3, queued=10), True),
    ],
)
def test_a_goal_is_moved_only_where_there_is_room(to: GoalState, counts: BacklogCounts, fits: bool) -> None:
    if fits:
        require_room(to, counts)
    else:
        with pytest.raises(LimitReached, match="at most"):
            require_room(to, counts)


def test_titles_are_compared_without_case_and_outer_blanks() -> None:
    assert text_key(" Straße ") == text_key("STRASSE")
    assert text_key("a b") != text_key("ab")


@pytest.mark.parametrize(
    ("before", "by", "after"),
    [
        (0.0, FEELING_OF_PROGRESS, 0.1),
        (0.0, FEELING_OF_FAILED_STEP, -0.1),
        (0.9, FEELING_OF_PROGRESS, 0.91),
        (-1.0, FEELING_OF_FAILED_STEP, -1.0),
    ],
)
def test_events_of_a_goal_move_its_valence(before: float, by: float, after: float) -> None:
    assert move_feeling(before, by) == pytest.approx(after)


@given(valence=st.floats(-1, 1), by=st.sampled_from([FEELING_OF_PROGRESS, FEELING_OF_FAILED_STEP]))
def test_valence_stays_in_range_and_moves_in_the_right_direction(valence: float, by: float) -> None:
    after = move_feeling(valence, by)
    assert -1 <= after <= 1
    assert (after - valence) * by >= -1e-4


@pytest.mark.parametrize(
    ("valence", "word"), [(0.0, ""), (0.29, ""), (0.3, "feels good"), (-0.5, "feels bad")]
)
def test_only_a_clear_valence_is_named(valence: float, word: str) -> None:
    assert feeling_word(valence) == word
