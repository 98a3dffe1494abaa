"""The present moment: what has just been thought, what worries, what is wondered about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# The origin of seed 000 keeps this many; with the lengths below a working memory stays under 64 KB (seed 003, 3.3).
MAX_THOUGHTS = 20
MAX_CONCERNS = 5
MAX_CURIOSITY = 10
THOUGHT_LENGTH = 500
LINE_LENGTH = 200

# How much a beat moves engagement: our choice; being spoken to moves it most, rest lowers it.
ENGAGED_BY_USER = 0.2
ENGAGED_BY_ACTION = 0.05
DISENGAGED_BY_REST = 0.1


class Thought(BaseModel):
    """One thought and when it came."""

    model_config = ConfigDict(frozen=True)

    text: str
    at: datetime


class WorkingMemory(BaseModel):
    """What is on an agent's mind now; oldest first."""

    model_config = ConfigDict(frozen=True)

    thoughts: Annotated[list[Thought], Field(max_length=MAX_THOUGHTS)] = []
    concerns: Annotated[list[str], Field(max_length=MAX_CONCERNS)] = []
    curiosity: Annotated[list[str], Field(max_length=MAX_CURIOSITY)] = []
    engagement: Annotated[float, Field(ge=0, le=1)] = 0.5


def after_beat(
    memory: WorkingMemory,
    *,
    thinking: str,
    concerns: Iterable[str],
    curiosity: Iterable[str],
    user_waiting: bool,
    acted: bool,
    now: datetime,
) -> WorkingMemory:
    """Return the working memory after a beat: its thought added, its concerns and questions on top.

    The oldest fall out when a list is full; saying something again brings it back to the top.
    `acted` tells whether the beat did anything but rest.
    """
    thoughts = list(memory.thoughts)
    if thinking.strip():
        thoughts.append(Thought(text=clip(thinking.strip(), THOUGHT_LENGTH), at=now))
    step = (ENGAGED_BY_USER if user_waiting else 0) + (ENGAGED_BY_ACTION if acted else -DISENGAGED_BY_REST)
    return WorkingMemory(
        thoughts=thoughts[-MAX_THOUGHTS:],
        concerns=_on_top(memory.concerns, concerns, MAX_CONCERNS),
        curiosity=_on_top(memory.curiosity, curiosity, MAX_CURIOSITY),
        engagement=min(max(memory.engagement + step, 0.0), 1.0),
    )


def clip(text: str, longest: int) -> str:
    """Return the text, or its beginning and an ellipsis, in at most `longest` characters."""
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _on_top(lines: Iterable[str], new: Iterable[str], most: int) -> list[str]:
    kept = {line.casefold(): line for line in lines}
    for line in new:
        line = clip(" ".join(line.split()), LINE_LENGTH)
        if line:
            kept.pop(line.casefold(), None)
            kept[line.casefold()] = line
    return list(kept.values())[-most:]
