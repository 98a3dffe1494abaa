"""Request objects for changes to a backlog."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from arbor.errors import Invalid
from arbor.goals.values import GoalLayer, GoalSource, GoalState

TITLE_LENGTH = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class NewGoalRequest:
    """A goal to add; without a state, its source decides the state."""

    title: str
    description: str = ""
    layer: GoalLayer = GoalLayer.OBJECTIVE
    source: GoalSource = GoalSource.CURIOSITY
    state: GoalState | None = None
    parent_id: str | UUID | None = None
    deadline: datetime | None = None
    #: Another open goal's id, or words.
    blocked_by: str = ""
    #: 0 to 1; None: by its source.
    expected_reward: float | None = None
    #: The rule of `arbor.goals.injection` that created the goal, if any.
    rule: str = ""


def checked_title(wanted: NewGoalRequest) -> str:
    """Return the new goal's title without blanks around it; raises Invalid for a wrong title, description or reward."""
    title = wanted.title.strip()
    if not title or len(title) > TITLE_LENGTH or "\0" in title + wanted.description:
        raise Invalid(f"a goal's title has 1 to {TITLE_LENGTH} characters, got {len(title)}")
    reward = wanted.expected_reward
    if reward is not None and not 0 <= reward <= 1:
        raise Invalid(f"what a goal is expected to be worth is 0 to 1, got {reward}")
    return title
