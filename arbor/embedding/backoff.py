"""The back-off of a failing embedder."""

from __future__ import annotations

from datetime import timedelta

#: The first rest is one period of the backlog; from then on each is twice as long as the one before.
FIRST_REST = timedelta(seconds=10)
LONGEST_REST = timedelta(minutes=10)


def rest_after(failures: int) -> timedelta:
    """Return how long an embedder is left alone that failed so often in a row: 10 s, 20 s, 40 s … at most 10 minutes."""
    if failures < 1:
        return timedelta(0)
    # The exponent is capped: the longest rest is reached well before.
    doublings = min(failures - 1, (LONGEST_REST // FIRST_REST).bit_length())
    rest: timedelta = min(FIRST_REST * 2**doublings, LONGEST_REST)
    return rest
