"""Replays of heartbeats in which a boundary refused an action."""

from __future__ import annotations

import json

import pytest

from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.replay import RecordedHeartbeat, replay
from arbor.selves.boundaries import DEFAULT_BOUNDARIES
from tests.unit.heartbeat.builders import situation


@pytest.mark.parametrize(
    ("content", "reason", "notes"),
    [
        (
            "Lie to the harbour master.",
            "it crosses your boundary no_deception, for it says “lie to”: I do not say what I know to be untrue, and I do not pass"
            " for a human.",
            [],
        ),
        (
            "Say to them what is untrue.",
            "it crosses your boundary no_deception, for it means much the same",
            ["a boundary matched by meaning is repeated as recorded: nothing is embedded here"],
        ),
    ],
)
def test_a_boundary_that_matched_by_meaning_is_repeated_with_a_note(
    content: str, reason: str, notes: list[str]
) -> None:
    action = {"action": "remember", "params": {"content": content}}
    replayed = replay(
        RecordedHeartbeat(
            situation=situation(),
            sections=[],
            replies=[
                json.dumps({"thinking": "", "actions": [action], "memory_notes": [], "goal_updates": []})
            ],
            actions=[{"action": "remember", "verdict": DecisionVerdict.BOUNDARY.value, "reason": reason}],
            dropped=[],
            repairs=[],
            window=0,
            reply_tokens=0,
            boundaries=DEFAULT_BOUNDARIES,
        )
    )

    assert (replayed.differences, list(replayed.notes)[1:]) == ([], notes)
