"""Retry delays of a failing embedder."""

from __future__ import annotations

from datetime import timedelta

#: One period of the embedding backlog. Each further delay is twice as long as the previous one.
FIRST_RETRY_DELAY = timedelta(seconds=10)
LONGEST_RETRY_DELAY = timedelta(minutes=10)


def embedder_retry_delay(failures: int) -> timedelta:
    """Compute the delay after a number of consecutive failures: 10 s, 20 s, 40 s … at most 10 minutes."""
    if failures < 1:
        return timedelta(0)
    # Cap the exponent: after many failures the power of two would not fit a timedelta.
    doublings = min(failures - 1, (LONGEST_RETRY_DELAY // FIRST_RETRY_DELAY).bit_length())
    delay: timedelta = min(FIRST_RETRY_DELAY * 2**doublings, LONGEST_RETRY_DELAY)
    return delay
