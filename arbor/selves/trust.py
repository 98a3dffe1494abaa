"""How far one agent trusts another: the formula of seed 003, 10.3."""

from __future__ import annotations

import math

#: Per heartbeat without a meeting.
FADING = 0.001
#: Of somebody nobody has dealt with yet; ours: neither trusted nor distrusted.
UNMET = 0.5
#: How much a new impression of somebody's competence or reliability counts against the old one; ours.
IMPRESSION = 0.3


def trust(*, successes: int, interactions: int, tick: int, last_tick: int) -> float:
    """Return how far somebody is trusted, 0 to 1: the share of meetings that went well, faded since the last.

    `tick` is the agent's heartbeat number now, `last_tick` at the last meeting. Without a meeting, 0.5.
    """
    if interactions <= 0:
        return UNMET
    return successes / interactions * math.exp(-FADING * max(tick - last_tick, 0))


def impression(old: float, new: float | None) -> float:
    """Return what is thought of a trait, 0 to 1, after a new impression of it, if there was one."""
    return old if new is None else round(old + IMPRESSION * (new - old), 4)
