"""What the prompt tells of a goal besides its name."""

from __future__ import annotations

import pytest

from arbor.heartbeat.sections.goals import goals
from arbor.heartbeat.sections.text import Data
from tests.unit.heartbeat.builders import NONCE, goal, situation


@pytest.mark.parametrize(
    ("effort", "shown"),
    [(0, "0% done)"), (1, "0% done, 1 heartbeat spent)"), (5, "0% done, 5 heartbeats spent)")],
)
def test_a_goal_says_how_much_was_spent_on_it(effort: int, shown: str) -> None:
    assert shown in goals(situation(goals=[goal(effort=effort)]), Data(NONCE))
