"""Similarity of goal titles: titles of the same goal, and titles of different goals that look alike."""

from __future__ import annotations

import pytest

from arbor.goals.likeness import same_goal, shared_words


@pytest.mark.parametrize(
    ("title", "other"),
    [
        ("Map the river", "map a river"),
        ("Map the river", "Mapping rivers"),
        ("Chart the harbour", "Chart the harbor"),
        ("Understand conciousness", "Understand consciousness"),
        ("Read about the tides", "About tides: read!"),
        ("Release 2.1", "the release 2.1"),
        ("Write to Ann", "write to Ann!"),
        ("Do not eat", "Don't eat"),
        ("Learn German", "learning German"),
    ],
)
def test_titles_of_one_goal_match(title: str, other: str) -> None:
    assert same_goal(title, other)
    assert same_goal(other, title)


@pytest.mark.parametrize(
    ("title", "other"),
    [
        ("Chart the north reef", "Chart the south reef"),
        ("Goal 1", "Goal 2"),
        ("Goal 1", "Goal 12"),
        ("Chapter A", "Chapter B"),
        ("Map the river", "Map the river and the lake"),
        ("Learn to sail", "Learn to swim"),
        ("Release 2.1", "Release 2.2"),
        ("", ""),
        ("Write the first letter", "Write the last letter"),
        ("Learn German", "Learn Germany"),
        ("learn german", "learn germany"),
        ("Eat", "Not eat"),
        ("Eat less sugar", "Don't eat less sugar"),
        ("Never say no to Ann", "Say no to Ann"),
        ("Call Ann", "Call Anne"),
        ("call ann", "call anne"),
        ("Call Jon", "Call John"),
        ("Email Stephan", "Email Stephen"),
        ("Draw the plan", "Draw the plane"),
        ("Sail up the river", "Sail down the river"),
        ("Walk to the harbour", "Walk from the harbour"),
        ("Cook with salt", "Cook without salt"),
        ("Work before lunch", "Work after lunch"),
    ],
)
def test_similar_titles_of_different_goals_do_not_match(title: str, other: str) -> None:
    assert not same_goal(title, other)
    assert not same_goal(other, title)


def test_inflected_forms_count_as_shared_words() -> None:
    assert shared_words("Map the river", "rivers and fords") == {"river"}
    assert shared_words("the", "of a") == frozenset()
