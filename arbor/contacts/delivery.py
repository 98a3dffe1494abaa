"""When a message that was not taken is tried again: a decision, nothing is done here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from arbor.contacts.values import DeliveryStatus

#: Tries in all. After the last of them a person decides.
MAX_TRIES = 8
_FIRST, _FACTOR, _LONGEST = timedelta(minutes=1), 4, timedelta(hours=6)
#: How long after each failed try the next one is made: 1, 4, 16, 64, 256 minutes, then 6 hours.
WAITS = tuple(min(_FIRST * _FACTOR**tried, _LONGEST) for tried in range(MAX_TRIES - 1))


@dataclass(frozen=True, kw_only=True)
class AfterFailure:
    """What becomes of a message whose try failed; `wait` is set when it is tried again."""

    status: DeliveryStatus
    wait: timedelta | None = None


def after_failure(*, tries: int, final: bool) -> AfterFailure:
    """Decide about a message that was tried `tries` times, 1 or more; `final`: trying again does not help."""
    if final or tries >= MAX_TRIES:
        return AfterFailure(status=DeliveryStatus.FAILED)
    return AfterFailure(status=DeliveryStatus.PENDING, wait=WAITS[tries - 1])
