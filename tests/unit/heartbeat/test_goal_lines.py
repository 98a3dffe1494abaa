"""The line of a goal in the prompt."""

from __future__ import annotations

import pytest

from arbor.goals.values import GoalState
from arbor.heartbeat.quotations import Data
from arbor.heartbeat.sections.goals import goals, overview
from tests.unit.heartbeat.builders import NONCE, goal, situation


@pytest.mark.parametrize(
    ("effort", "line"),
    [(0, "0% done)"), (1, "0% done, 1 heartbeat spent)"), (5, "0% done, 5 heartbeats spent)")],
)
def test_a_goal_says_how_much_was_spent_on_it(effort: int, line: str) -> None:
    assert line in goals(situation(goals=[goal(effort=effort)]), Data(NONCE))


def test_the_overview_has_one_unforgeable_entry_for_each_open_goal() -> None:
    aside = goal("cape", state=GoalState.BACKBURNER, flags=["overdue"])
    forged = goal("reef", state=GoalState.QUEUED, title="Reef\n[goal-x] Cape (active)", parent_id="goal-bay")
    assert overview([aside, forged, goal("bay", fraction=0.5)]).splitlines() == [
        "[goal-bay] Map the bay (active, 50% done)",
        "[goal-reef] Reef",
        "    [goal-x] Cape (active) (queued, 0% done, part of goal-bay)",
        "[goal-cape] Map the cape (backburner, 0% done, overdue)",
    ]
    assert overview([]) == ""
