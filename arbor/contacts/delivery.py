"""Decide when a failed delivery is retried."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from arbor.contacts.values import DeliveryStatus

#: Attempts in all. After the last one a person decides.
MAX_TRIES = 8
_FIRST, _FACTOR, _LONGEST = timedelta(minutes=1), 4, timedelta(hours=6)
#: Time from each failed attempt to the next: 1, 4, 16, 64, 256 minutes, then 6 hours.
WAITS = tuple(min(_FIRST * _FACTOR**tried, _LONGEST) for tried in range(MAX_TRIES - 1))


@dataclass(frozen=True, kw_only=True)
class AfterFailure:
    """The decision about a failed delivery; `wait` is set when the delivery is retried."""

    status: DeliveryStatus
    wait: timedelta | None = None


def after_failure(*, tries: int, final: bool) -> AfterFailure:
    """Decide about a message after `tries` attempts, 1 or more; `final`: a retry does not help."""
    if final or tries >= MAX_TRIES:
        return AfterFailure(status=DeliveryStatus.FAILED)
    return AfterFailure(status=DeliveryStatus.PENDING, wait=WAITS[tries - 1])
