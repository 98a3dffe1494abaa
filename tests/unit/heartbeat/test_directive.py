"""The directive about the most important goal."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalLayer
from arbor.heartbeat.sections.moment import DIRECTIVES, UNPLANNED, directive
from arbor.heartbeat.situation import Mode
from tests.unit.heartbeat.builders import goal, intent, situation

FOREMOST = goal("reef", priority=9.0)
LESSER = goal("harbour", priority=2.0)


@pytest.mark.parametrize(
    ("changes", "unplanned"),
    [
        ({}, True),
        ({"intents": [intent(), intent("dive", goal_id="goal-reef")]}, False),
        # A step that another heartbeat has taken up is one, too.
        ({"intents": [intent(), intent("dive", goal_id="goal-reef", status=IntentStatus.LOCKED)]}, False),
        # What waits for something cannot be brought forward by steps.
        ({"goals": [goal("reef", blocked_by="the tide"), LESSER]}, False),
        # It is no goal to break into steps: what is done for it are goals of their own.
        ({"goals": [goal("reef", layer=GoalLayer.ASPIRATION), LESSER]}, False),
        ({"goals": [goal("reef", rule="survival"), LESSER]}, False),
        ({"goals": [LESSER, FOREMOST]}, True),
        # The next important one is planned then, though one below it has steps.
        ({"goals": [goal("reef", blocked_by="the tide"), goal("pier", priority=5.0), LESSER]}, True),
    ],
)
def test_a_foremost_goal_without_a_step_is_broken_into_steps_before_a_lesser_one_goes_on(
    changes: dict[str, Any], unplanned: bool
) -> None:
    values: dict[str, Any] = {"goals": [FOREMOST, LESSER], "intents": [intent()], **changes}
    text = directive(situation(mode=Mode.GOAL_PURSUIT, **values))
    assert (UNPLANNED in text) is unplanned
    assert (DIRECTIVES[Mode.GOAL_PURSUIT] in text) is not unplanned


def test_other_modes_have_their_own_directive_whatever_is_planned() -> None:
    for mode in (Mode.CONVERSATION, Mode.CONSOLIDATION, Mode.REFLECTION):
        seen = situation(mode=mode, goals=[FOREMOST, LESSER], intents=[intent()])
        assert directive(seen) == f"## This heartbeat: {mode}\n{DIRECTIVES[mode]}"
