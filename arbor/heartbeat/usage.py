"""What an agent may use in a day, how much of it is left, and what it does without as it runs low."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum


class Degradation(StrEnum):
    """How far a day's budget is used up, and how much is still done (the origin of seed 003: its levels)."""

    #: More than 60 % is left, or nothing is limited.
    NORMAL = "normal"
    #: More than 30 %: no second turn in a beat, and a cheaper tier of thinking.
    CONSERVATION = "conservation"
    #: More than 10 %: the cheapest tier; only beats that somebody asked for, or that serve an active goal.
    DEGRADATION = "degradation"
    #: Something: only for a user who waits.
    END_TIMES = "end_times"
    #: Nothing: no beat before the next day.
    HALT = "halt"

    @property
    def rank(self) -> int:
        """Return how bad it is, 0 for normal."""
        return list(Degradation).index(self)

    @property
    def may_follow_up(self) -> bool:
        """Return whether a beat may think again after seeing what its actions brought."""
        return self is Degradation.NORMAL

    @property
    def may_tend(self) -> bool:
        """Return whether maintenance may ask models: never of what is left for users who wait."""
        return self.rank < Degradation.END_TIMES.rank

    @property
    def tiers_down(self) -> int:
        """Return by how many tiers the thinking is cheaper; 2 is the cheapest whatever it would have been."""
        return min(self.rank, 2)


#: A level holds while more than this share is left.
_ABOVE: Mapping[Degradation, float] = {
    Degradation.NORMAL: 0.6,
    Degradation.CONSERVATION: 0.3,
    Degradation.DEGRADATION: 0.1,
    Degradation.END_TIMES: 0.0,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Amounts:
    """Beats, tokens and US dollars; as a limit, None is unlimited."""

    beats: int | None = None
    tokens: int | None = None
    usd: Decimal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Scarcest:
    """Which limit is nearest, and which share of it is left."""

    #: "beats", "tokens" or "US dollars", and whose: "its" or "its tenant's".
    what: str
    whose: str
    left: float


def scarcest(pairs: Iterable[tuple[str, Amounts, Amounts]]) -> Scarcest | None:
    """Return the limit nearest to its end among (whose, limits, used); None where nothing is limited.

    A limit of 0 has nothing left from the start.
    """
    found: Scarcest | None = None
    for whose, limits, used in pairs:
        for what, limit, spent in (
            ("beats", limits.beats, used.beats),
            ("tokens", limits.tokens, used.tokens),
            ("US dollars", limits.usd, used.usd),
        ):
            if limit is None:
                continue
            left = max(0.0, 1 - float(spent or 0) / float(limit)) if limit > 0 else 0.0
            if found is None or left < found.left:
                found = Scarcest(what=what, whose=whose, left=left)
    return found


def level_of(left: float | None) -> Degradation:
    """Return the level at which this share is left; None: nothing is limited."""
    if left is None:
        return Degradation.NORMAL
    return next((level for level, above in _ABOVE.items() if left > above), Degradation.HALT)


def withheld(
    level: Degradation, *, user_waiting: bool, asked_for: bool, serves_goal: bool, now: datetime
) -> str:
    """Return why a beat is not run at this level, and when it goes on; empty when it is run.

    `asked_for`: a person, a conversation, an event or a cycle brought it about; `serves_goal`: an objective or
    a task is active, or a step waits.
    """
    again = f"it goes on at {renewed_at(now):%Y-%m-%d %H:%M} UTC"
    match level:
        case Degradation.HALT:
            return f"the day's budget is used up; {again}"
        case Degradation.END_TIMES if not user_waiting:
            return f"the day's budget is nearly used up, and what is left is for users who wait; {again}"
        case Degradation.DEGRADATION if not (user_waiting or asked_for or serves_goal):
            return f"the day's budget runs low, and this beat serves no goal and nobody asked for it; {again}"
        case _:
            return ""


def renewed_at(now: datetime) -> datetime:
    """Return when the next day (UTC) begins, and with it a new budget."""
    return datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
