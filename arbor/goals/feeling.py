"""An agent's feeling about a goal, from -1 (bad) to 1 (good), moved by events of the goal."""

from __future__ import annotations

# As much as the same events move the mood (`arbor.selves.emotions`, from the origin of seed 004).
FURTHER_ON = 0.1
STEP_FAILED = -0.1
#: From this strength on, the prompt names the feeling.
FELT = 0.3


def felt_after(valence: float, by: float) -> float:
    """Move a feeling; the nearer it is to an end of the scale, the less it moves that way."""
    room = 1 - valence if by > 0 else 1 + valence
    return round(min(max(valence + by * min(room, 1.0), -1.0), 1.0), 4)


def in_a_word(valence: float) -> str:
    """Return a feeling as a word; empty for a weak one."""
    if abs(valence) < FELT:
        return ""
    return "feels good" if valence > 0 else "feels bad"
