"""Intents: committed steps that are attempted a few times, then abandoned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import TransitionIllegal

# Seed 000, 2: abandoned after three failures.
MAX_ATTEMPTS = 3
# The most steps of one goal that are committed at once (the origin of seed 000).
MAX_AT_ONCE = 3
# The origin of seed 000: a lock whose heartbeat no longer runs is released after this time.
STALE_LOCK = timedelta(seconds=60)
# A step may take three times its estimated heartbeats, as a step of one heartbeat may be tried three times.
TICKS_FOR_ESTIMATE = 3
#: Actions that do no work on a goal that they name: resting does nothing for the goal, and the others change goals
#: directly, without an intent.
NO_WORK = frozenset({"rest", "review_goals", "brainstorm_goals", "reprioritize"})
#: Actions that cannot replace the action of a step: these, and looking around.
NO_SUBSTITUTES = NO_WORK | {"observe"}


class IntentStatus(StrEnum):
    """The status of an intent."""

    #: Waits to be executed.
    PENDING = "pending"
    #: A heartbeat executes it now.
    LOCKED = "locked"
    #: Done.
    COMPLETED = "completed"
    #: Cannot succeed, so it is not tried again.
    FAILED = "failed"
    #: Failed too often or used up its heartbeats, or its plan or goal has ended.
    ABANDONED = "abandoned"


INTENT_TRANSITIONS: Mapping[IntentStatus, tuple[IntentStatus, ...]] = MappingProxyType(
    {
        IntentStatus.PENDING: (IntentStatus.LOCKED, IntentStatus.ABANDONED),
        IntentStatus.LOCKED: (
            IntentStatus.PENDING,
            IntentStatus.COMPLETED,
            IntentStatus.FAILED,
            IntentStatus.ABANDONED,
        ),
        IntentStatus.COMPLETED: (),
        IntentStatus.FAILED: (),
        IntentStatus.ABANDONED: (),
    }
)


def move_intent(status: IntentStatus, to: IntentStatus) -> IntentStatus:
    """Return `to` if an intent may go there from `status`.

    Raises TransitionIllegal, naming the statuses that are possible.
    """
    possible = INTENT_TRANSITIONS[status]
    if to not in possible:
        raise TransitionIllegal(
            f"an intent that is {status} can become {', '.join(possible) or 'nothing else'}, not {to}"
        )
    return to


def carries_out(
    action: str, step: str, *, offered: Collection[str], substitutes: Collection[str] = frozenset()
) -> bool:
    """Return whether an action carries out a step that names the action `step`.

    The step's own action does, and so do the actions in `substitutes`. Another action does only where the step's own is
    not `offered`.
    """
    if action == step or action in substitutes:
        return True
    return step not in offered and action in offered and action not in NO_SUBSTITUTES


def tick_limit(estimated_ticks: int | None) -> int | None:
    """Return the most heartbeats that may be spent on a step (seed 003, 3.10); None: no limit."""
    return max(1, estimated_ticks) * TICKS_FOR_ESTIMATE if estimated_ticks is not None else None


def is_stale_lock(locked_at: datetime | None, *, now: datetime, holder_runs: bool) -> bool:
    """Return whether a lock is to be released: its heartbeat runs no more, and a minute has passed."""
    return not holder_runs and (locked_at is None or now - locked_at >= STALE_LOCK)


def is_used_up(ticks_used: int, limit: int | None) -> bool:
    """Return whether the heartbeats of a step are used up."""
    return limit is not None and ticks_used >= limit


def status_after_failure(
    attempts: int, *, final: bool = False, ticks_used: int = 0, limit: int | None = None
) -> IntentStatus:
    """Return the next status of a locked intent whose attempt number `attempts` (from 1) has failed.

    `final`: a retry cannot help, because the action or its target is gone. `limit` is the step's limit of heartbeats.
    """
    if final:
        return IntentStatus.FAILED
    given_up = attempts >= MAX_ATTEMPTS or is_used_up(ticks_used, limit)
    return IntentStatus.ABANDONED if given_up else IntentStatus.PENDING


def status_after_part(*, ticks_used: int, limit: int | None) -> IntentStatus:
    """Return the next status of a locked intent that was done in part: pending while the estimate allows more."""
    if limit is None or ticks_used * TICKS_FOR_ESTIMATE >= limit:
        return IntentStatus.COMPLETED
    return IntentStatus.PENDING
