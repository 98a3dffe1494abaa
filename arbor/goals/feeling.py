"""How an agent feels about a goal, from -1 (bad) to 1 (good): what happens to the goal moves it."""

from __future__ import annotations

# As a heartbeat's own feeling is moved by the same things (`arbor.selves.emotions`, from the origin of seed 004).
FURTHER_ON = 0.1
STEP_FAILED = -0.1
#: From here on it is named in the prompt.
FELT = 0.3


def felt_after(valence: float, by: float) -> float:
    """Return the feeling after it was moved: the nearer it is to an end of the scale, the less it moves that way."""
    room = 1 - valence if by > 0 else 1 + valence
    return round(min(max(valence + by * min(room, 1.0), -1.0), 1.0), 4)


def in_a_word(valence: float) -> str:
    """Say how a goal feels, or nothing for one that hardly does."""
    if abs(valence) < FELT:
        return ""
    return "feels good" if valence > 0 else "feels bad"
