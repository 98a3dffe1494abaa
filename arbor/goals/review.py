"""What a look at the backlog notices in a goal (seed 004, 4.4)."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from arbor.goals.values import GoalState

# Seed 004, 4.4 and 9.1.
STALE_AFTER = timedelta(days=7)


class GoalFlag(StrEnum):
    """Something about a goal that wants attention."""

    #: It waits for something else.
    BLOCKED = "blocked"
    #: Nothing has happened to it for a week although it is active.
    STALE = "stale"
    #: Its deadline has passed.
    OVERDUE = "overdue"


def flag_goal(
    state: GoalState, *, touched_at: datetime, blocked_by: str, deadline: datetime | None, now: datetime
) -> tuple[GoalFlag, ...]:
    """Return what wants attention in a goal; a closed one wants none, and only an active one can go stale."""
    if not state.is_open:
        return ()
    flags = []
    if blocked_by.strip():
        flags.append(GoalFlag.BLOCKED)
    if state is GoalState.ACTIVE and now - touched_at > STALE_AFTER:
        flags.append(GoalFlag.STALE)
    if deadline is not None and deadline < now:
        flags.append(GoalFlag.OVERDUE)
    return tuple(flags)
