"""Intents: steps an agent has committed to, tried a few times, then given up."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import TransitionIllegal

# Seed 000, 2: abandoned after three failures.
MAX_ATTEMPTS = 3


class IntentStatus(StrEnum):
    """How far an intent has come."""

    #: Waits to be executed.
    PENDING = "pending"
    #: A heartbeat executes it now.
    LOCKED = "locked"
    #: Done.
    COMPLETED = "completed"
    #: It cannot work, so it is not tried again.
    FAILED = "failed"
    #: Given up: it failed too often, or its goal is no longer pursued.
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


def after_failure(attempts: int, *, final: bool = False) -> IntentStatus:
    """Return what becomes of a locked intent whose attempt number `attempts` (from 1) has failed.

    `final` says that trying again cannot help: the action is gone, or what it refers to.
    """
    if final:
        return IntentStatus.FAILED
    return IntentStatus.PENDING if attempts < MAX_ATTEMPTS else IntentStatus.ABANDONED
