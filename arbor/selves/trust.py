"""Trust between agents: the formula of seed 003, 10.3."""

from __future__ import annotations

import math

#: The loss of trust per heartbeat without a meeting.
FADING = 0.001
#: The trust in an unknown peer: neither trusted nor distrusted.
UNMET = 0.5
#: The weight of a new impression of competence or reliability against the old one.
IMPRESSION = 0.3


def trust(*, successes: int, interactions: int, heartbeat_number: int, last_heartbeat_number: int) -> float:
    """Compute the trust in a peer, 0 to 1: the share of meetings that went well, faded since the last.

    `heartbeat_number` is that of the agent's heartbeat now, `last_heartbeat_number` that of the last meeting. Without a meeting, 0.5.
    """
    if interactions <= 0:
        return UNMET
    return successes / interactions * math.exp(-FADING * max(heartbeat_number - last_heartbeat_number, 0))


def impression(old: float, new: float | None) -> float:
    """Update the estimate of a trait, 0 to 1, by a new impression, if any."""
    return old if new is None else round(old + IMPRESSION * (new - old), 4)
