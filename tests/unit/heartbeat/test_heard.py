"""The foremost_percept percept."""

from __future__ import annotations

import pytest

from arbor.heartbeat.focus import focus_text, foremost_percept
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
def test_what_a_user_said_last_goes_before_what_came_last(kinds: list[str], place: int | None) -> None:
    heard = [percept(f"thing {number}", kind=kind) for number, kind in enumerate(kinds)]
    assert foremost_percept(heard) is (None if place is None else heard[place])


def test_a_beat_recalls_about_what_a_user_said() -> None:
    heard = [percept("Where is the ferry?"), percept("It snows.", kind="environment")]
    assert focus_text(situation(percepts=heard)) == "Where is the ferry?"
