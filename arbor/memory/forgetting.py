"""The decay of importance and the rules of forgetting: pure functions of a memory's state and the time.

Forgotten memories are archived, not deleted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import ConfigurationInvalid
from arbor.memory.values import MemoryType, Retention
from arbor.setting_lists import MAX_COUNT, name_values, parse_count

_SECONDS_PER_DAY = 86_400
_DAYS_PER_WEEK = 7
#: The share of importance that is left after a week without use (seed 001, "Importance Decay").
RETAINED_PER_WEEK = 0.95
#: The share of the distance to 1 that importance gains with each e-fold of uses: `+0.1·ln(1+n)` (seed 004).
BOOST = 0.1
#: A memory is archived when its importance has decayed below the first limit, and early when it never was above the second
#: (seed 001).
ARCHIVE_BELOW = 0.1
CLEANUP_BELOW = 0.2
#: The time for which a new or just used memory neither fades nor is cleaned up, because its heartbeat may still need it.
GRACE = timedelta(days=1)
#: The most episodic memories of one agent (seed 001, "Storage Quotas").
QUOTA = 10_000
#: The most memories of one agent of each other type. The origin of seed 000 has 500 of each, in a graph without an archive.
KNOWLEDGE_QUOTAS: Mapping[MemoryType, int] = MappingProxyType(
    {MemoryType.SEMANTIC: 5_000, MemoryType.PROCEDURAL: 1_000, MemoryType.STRATEGIC: 1_000}
)


def days_between(earlier: datetime, later: datetime) -> float:
    """Return the days from one moment to another, 0 when the clock has jumped back."""
    return max(0.0, (later - earlier).total_seconds() / _SECONDS_PER_DAY)


def relevance(*, importance: float, decay_rate: float, days_since_access: float) -> float:
    """Return `importance · e^(−decay_rate · days since the last access)`, from 0 to `importance` (seed 004).

    Importance is from 0 to 1, the rate is per day. For a memory that was never accessed, the days count from its event.
    """
    return importance * math.exp(-decay_rate * max(0.0, days_since_access))


def effective_importance(*, importance: float, uses: int) -> float:
    """Return the importance with the gain by use, from `importance` to 1.

    Each use, a recall by the agent or a reinforcement, counts less than the one before: `0.1 · ln(1 + uses)` of the
    distance to 1. The gain is not stored but computed from the number of uses, so no use is counted twice.
    """
    gain = min(1.0, BOOST * math.log1p(max(0, uses)))
    return importance + (1.0 - importance) * gain


def decayed_importance(*, importance: float, days_since_use: float) -> float:
    """Return `importance · 0.95^(weeks since the last use)`, from 0 to `importance` (seed 001).

    For a memory that was never used, the weeks count from its creation.
    """
    return importance * math.pow(RETAINED_PER_WEEK, max(0.0, days_since_use) / _DAYS_PER_WEEK)


class ForgettingReason(StrEnum):
    """The reasons for forgetting a memory."""

    #: The memory's `expires_at` has passed.
    EXPIRED = "expired"
    #: The memory's importance, decayed since its last use, is below the limit.
    FADED = "faded"
    #: The episodic memory was of little importance from the start, and its use has not raised the importance enough.
    TRIVIAL = "trivial"
    #: The agent exceeds its quota of the memory's type, and the memory is among the least important ones.
    CROWDED = "crowded"


@dataclass(frozen=True, kw_only=True)
class ForgettingPolicy:
    """The limits of forgetting. Raises ConfigurationInvalid for an impossible value."""

    archive_below: float = ARCHIVE_BELOW
    cleanup_below: float = CLEANUP_BELOW
    grace: timedelta = GRACE
    quota: int = QUOTA
    #: The quotas of the types that are not episodic.
    knowledge: Mapping[MemoryType, int] = field(default_factory=lambda: KNOWLEDGE_QUOTAS)

    def __post_init__(self) -> None:
        for name, value in (("archived", self.archive_below), ("cleaned up", self.cleanup_below)):
            if not 0 <= value <= 1:
                raise ConfigurationInvalid(
                    f"the importance below which memories are {name} must be 0 to 1, got {value}"
                )
        if self.grace < timedelta(0):
            raise ConfigurationInvalid(f"the grace of a memory must not be negative, got {self.grace}")
        if not 1 <= self.quota <= MAX_COUNT:
            raise ConfigurationInvalid(
                f"an agent's quota of memories must be 1 to {MAX_COUNT:,}, got {self.quota}"
            )

    def quota_of(self, kind: MemoryType) -> int:
        """Return the most memories of a type that one agent has in mind."""
        return self.quota if kind is MemoryType.EPISODIC else self.knowledge[kind]


def parse_quotas(text: str) -> Mapping[MemoryType, int]:
    """Parse quotas such as `semantic=2000, procedural=200`; other types have their defaults. Raises ConfigurationInvalid."""
    quotas = dict(KNOWLEDGE_QUOTAS)
    for entry, name, value in name_values(text, setting="ARBOR_KNOWLEDGE_QUOTAS"):
        quota = parse_count(value)
        if name not in KNOWLEDGE_QUOTAS or quota is None:
            raise ConfigurationInvalid(
                f"ARBOR_KNOWLEDGE_QUOTAS has NAME=NUMBER, separated by commas, each number 1 to {MAX_COUNT:,}, got {entry!r};"
                f" names are {', '.join(KNOWLEDGE_QUOTAS)} (ARBOR_MEMORY_QUOTA is the quota of episodic memories)"
            )
        quotas[MemoryType(name)] = quota
    return MappingProxyType(quotas)


@dataclass(frozen=True, kw_only=True)
class ForgettableMemory:
    """The fields of a memory that the rules of forgetting read."""

    type: MemoryType
    importance: float
    retention: Retention
    created_at: datetime
    #: The time of the last recall by the agent, or of the last reinforcement; None for a memory that was never used.
    used_at: datetime | None = None
    #: The number of recalls by the agent and of reinforcements.
    uses: int = 0
    expires_at: datetime | None = None
    #: Whether something unfinished, such as an open goal, needs the memory.
    needed: bool = False

    @property
    def touched_at(self) -> datetime:
        """The time of the memory's last use, or of its creation if it was never used."""
        return max(self.created_at, self.used_at) if self.used_at else self.created_at

    @property
    def is_protected(self) -> bool:
        """Return whether the memory is exempt from fading, early cleanup and the quota."""
        return self.retention is Retention.PERMANENT or self.needed

    @property
    def effective_importance(self) -> float:
        """The importance with the gain by use."""
        return effective_importance(importance=self.importance, uses=self.uses)


def forgetting_reason(
    memory: ForgettableMemory, *, now: datetime, policy: ForgettingPolicy
) -> ForgettingReason | None:
    """Return why one active memory is to be forgotten, None if it is not; quotas compare all memories and are applied elsewhere.

    An expiry, given or computed from the retention, applies to protected memories too. Early cleanup applies to episodic
    memories only (seed 001); all types of memories fade.
    """
    if memory.expires_at is not None and memory.expires_at <= now:
        return ForgettingReason.EXPIRED
    if memory.is_protected:
        return None
    if now - memory.touched_at < policy.grace:
        return None
    idle = days_between(memory.touched_at, now)
    importance = memory.effective_importance
    if decayed_importance(importance=importance, days_since_use=idle) < policy.archive_below:
        return ForgettingReason.FADED
    if memory.type is MemoryType.EPISODIC and importance < policy.cleanup_below:
        return ForgettingReason.TRIVIAL
    return None
