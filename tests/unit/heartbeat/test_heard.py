"""The foremost percept."""

from __future__ import annotations

import pytest

from arbor.heartbeat.focus import focus_text, foremost
from tests.unit.heartbeat.builders import percept, situation


@pytest.mark.parametrize(
    ("kinds", "place"),
    [
        ([], None),
        (["environment", "error"], 1),
        (["user_message", "environment"], 0),
        (["user_message", "user_message", "environment"], 1),
    ],
)
def test_the_last_user_message_is_foremost(kinds: list[str], place: int | None) -> None:
    percepts = [percept(f"thing {number}", kind=kind) for number, kind in enumerate(kinds)]
    assert foremost(percepts) is (None if place is None else percepts[place])


def test_a_beat_recalls_about_what_a_user_said() -> None:
    percepts = [percept("Where is the ferry?"), percept("It snows.", kind="environment")]
    assert focus_text(situation(percepts=percepts)) == "Where is the ferry?"
