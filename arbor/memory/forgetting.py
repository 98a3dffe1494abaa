"""The decay of importance and the rules of forgetting: pure functions of a memory's state and the time.

Forgotten memories are archived, not lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from arbor.errors import ConfigurationInvalid
from arbor.memory.values import MemoryType, Retention

_SECONDS_PER_DAY = 86_400
_DAYS_PER_WEEK = 7
#: What a week without retrieval leaves of importance (seed 001, "Importance Decay").
KEPT_PER_WEEK = 0.95
#: Of the distance to 1, what importance gains by each e-fold of uses: `+0.1·ln(1+n)` (seed 004).
BOOST = 0.1


#: Seed 001: what has decayed below the first is archived; what was never above the second, early.
ARCHIVE_BELOW = 0.1
CLEANUP_BELOW = 0.2
#: A memory that is new, or was just used, is not cleaned up: its heartbeat may still need it.
GRACE = timedelta(days=1)
#: Seed 001, "Storage Quotas": episodic memories of one agent.
QUOTA = 10_000


def days_between(earlier: datetime, later: datetime) -> float:
    """Return the days from one moment to another, 0 when the clock has jumped back."""
    return max(0.0, (later - earlier).total_seconds() / _SECONDS_PER_DAY)


def relevance(*, importance: float, decay_rate: float, days_since_access: float) -> float:
    """Return `importance · e^(−decay_rate · days since the last access)`, from 0 to `importance` (seed 004).

    Importance is from 0 to 1, the rate is per day. A memory that was never accessed counts from when it was made.
    """
    return importance * math.exp(-decay_rate * max(0.0, days_since_access))


def effective_importance(*, importance: float, uses: int) -> float:
    """Return importance, from 0 to 1, with what use has added to it: from `importance` to 1.

    Each use, a recall by the agent or a reinforcement, counts less than the one before: `0.1 · ln(1 + uses)` of the
    distance to 1. It is computed, so no use is counted twice.
    """
    gained = min(1.0, BOOST * math.log1p(max(0, uses)))
    return importance + (1.0 - importance) * gained


def decayed_importance(*, importance: float, days_since_use: float) -> float:
    """Return `importance · 0.95^(weeks since the last use)`, from 0 to `importance` (seed 001).

    A memory that was never used counts from when it was made.
    """
    return importance * math.pow(KEPT_PER_WEEK, max(0.0, days_since_use) / _DAYS_PER_WEEK)


class Reason(StrEnum):
    """Why a memory is forgotten."""

    #: Its `expires_at` has passed.
    EXPIRED = "expired"
    #: Its importance, decayed since it was last used, is below the limit.
    FADED = "faded"
    #: It was of little importance from the start, and nothing has come of it.
    TRIVIAL = "trivial"
    #: Its agent has more than its quota, and it is among the least important.
    CROWDED = "crowded"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The limits. Raises ConfigurationInvalid for one that makes no sense."""

    archive_below: float = ARCHIVE_BELOW
    cleanup_below: float = CLEANUP_BELOW
    grace: timedelta = GRACE
    quota: int = QUOTA

    def __post_init__(self) -> None:
        for name, value in (("archived", self.archive_below), ("cleaned up", self.cleanup_below)):
            if not 0 <= value <= 1:
                raise ConfigurationInvalid(
                    f"the importance below which memories are {name} must be 0 to 1, got {value}"
                )
        if self.grace < timedelta(0):
            raise ConfigurationInvalid(f"the grace of a memory must not be negative, got {self.grace}")
        if self.quota < 1:
            raise ConfigurationInvalid(
                f"an agent's quota of memories must be 1 at least, got {self.quota}; there is no way to allow none"
            )


@dataclass(frozen=True, kw_only=True)
class Held:
    """The state of a memory that the verdict depends on."""

    type: MemoryType
    importance: float
    retention: Retention
    created_at: datetime
    #: When it was last recalled by its agent, or remembered again; None: never.
    used_at: datetime | None = None
    #: How often it was recalled by its agent or remembered again.
    uses: int = 0
    expires_at: datetime | None = None
    #: Something that is not over yet, such as an open goal, needs it.
    needed: bool = False

    @property
    def touched_at(self) -> datetime:
        """The time of its last use, or else of its creation."""
        return max(self.created_at, self.used_at) if self.used_at else self.created_at

    @property
    def is_protected(self) -> bool:
        """Return whether it neither fades nor counts as trivial nor makes room for others."""
        return self.retention is Retention.PERMANENT or self.needed

    @property
    def effective_importance(self) -> float:
        """Its importance with what use has added."""
        return effective_importance(importance=self.importance, uses=self.uses)


@dataclass(frozen=True, kw_only=True)
class ForgettingVerdict:
    """The decision to forget a memory, with its reason; without a reason, the memory is retained."""

    reason: Reason | None = None

    @property
    def archives(self) -> bool:
        """Return whether the memory is forgotten."""
        return self.reason is not None


KEEP = ForgettingVerdict()


def forget(held: Held, *, now: datetime, policy: Policy) -> ForgettingVerdict:
    """Judge one active memory by itself; only the quota looks at all of them together.

    An expiry is a date that somebody set, so it applies to protected memories too. Early cleanup is of episodic
    memories, as the quota is (seed 001 speaks of these); facts, procedures and strategies fade like everything else.
    """
    if held.expires_at is not None and held.expires_at <= now:
        return ForgettingVerdict(reason=Reason.EXPIRED)
    if held.is_protected:
        return KEEP
    if now - held.touched_at < policy.grace:
        return KEEP
    idle = days_between(held.touched_at, now)
    importance = held.effective_importance
    if decayed_importance(importance=importance, days_since_use=idle) < policy.archive_below:
        return ForgettingVerdict(reason=Reason.FADED)
    if held.type is MemoryType.EPISODIC and importance < policy.cleanup_below:
        return ForgettingVerdict(reason=Reason.TRIVIAL)
    return KEEP
