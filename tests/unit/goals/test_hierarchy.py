"""Goals within goals: progress, completion and placement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arbor.errors import Invalid
from arbor.goals.hierarchy import MAX_DEPTH, ChildGoal, fraction_of, is_reached, require_place
from arbor.goals.values import GoalState

A, Q, C, X = GoalState.ACTIVE, GoalState.QUEUED, GoalState.COMPLETED, GoalState.ABANDONED


@pytest.mark.parametrize(
    ("states", "reached"),
    [
        ((), False),
        ((C,), True),
        ((C, C), True),
        ((C, A), False),
        ((C, Q), False),
        ((C, X), True),
        ((X,), False),
        ((X, X), False),
        ((X, A), False),
    ],
)
def test_a_parent_is_reached_when_no_part_is_open_and_one_completed(
    states: tuple[GoalState, ...], reached: bool
) -> None:
    assert is_reached(ChildGoal(state=state) for state in states) is reached


@pytest.mark.parametrize(
    ("children", "expected"),
    [
        ((), None),
        (((A, 0.5),), 0.5),
        (((A, 0.5), (C, 0.2)), 0.75),
        (((A, 0.0), (X, 0.9)), 0.0),
        (((X, 0.9),), None),
        # Rounded: (0.1 + 0.2) / 2 is 0.15000000000000002.
        (((A, 0.1), (A, 0.2)), 0.15),
        (((A, 0.3), (Q, 0.0), (C, 1.0)), 0.433333),
    ],
)
def test_a_parent_has_the_mean_progress_of_its_children(
    children: tuple[tuple[GoalState, float], ...], expected: float | None
) -> None:
    assert fraction_of(ChildGoal(state=state, fraction=done) for state, done in children) == expected


@pytest.mark.parametrize(
    ("goal", "parent", "fits"),
    [
        (None, "top", True),
        (None, "3", True),
        (None, "4", False),
        ("top", "top", False),
        ("top", "2", False),
        ("1", "alone", True),
        ("2", "alone", True),
        ("alone", "3", True),
        ("alone", "4", False),
        ("alone", "gone", True),
    ],
)
def test_a_goal_cannot_be_placed_below_itself_or_too_deep(goal: str | None, parent: str, fits: bool) -> None:
    parents = {"top": None, "1": "top", "2": "1", "3": "2", "4": "3", "alone": None}
    assert MAX_DEPTH == 5
    if fits:
        require_place(goal, parent, parents)
    else:
        with pytest.raises(Invalid, match=r"part of itself|at most 5 deep"):
            require_place(goal, parent, parents)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=60))
def test_no_sequence_of_moves_creates_a_cycle_or_a_deeper_tree(
    moves: list[tuple[int, int]],
) -> None:
    parents: dict[int, int | None] = dict.fromkeys(range(13))
    for goal, parent in moves:
        try:
            require_place(goal, parent, parents)
        except Invalid:
            continue
        parents[goal] = parent
    for goal in parents:
        above, path = parents[goal], [goal]
        while above is not None:
            assert above not in path
            path.append(above)
            above = parents[above]
        assert len(path) <= MAX_DEPTH
