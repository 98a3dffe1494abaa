"""The policy of saved seeds: the reasons for saving them, and their lifetimes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from uuid import UUID

#: The number of the latest seeds of an agent that are saved, whatever their age.
LATEST = 5
#: The time for which the last seed of each day is saved as well.
DAILY = timedelta(days=7)
#: The time for which the seeds of a destroyed agent are saved.
AFTER_DESTRUCTION = timedelta(days=30)


class SeedReason(StrEnum):
    """The reason why a seed is saved."""

    #: A person asked for it.
    REQUESTED = "requested"
    #: Another seed is restored into the agent.
    RESTORE = "restore"
    #: What another agent learned is merged into the agent.
    MERGE = "merge"
    #: Somebody uploaded it.
    UPLOADED = "uploaded"
    #: The agent is moved to another embedding model.
    REEMBED = "reembed"
    #: The agent is destroyed.
    DESTROY = "destroy"


@dataclass(frozen=True, kw_only=True)
class DatedSeed:
    """A saved seed, as the policy sees it: `at` is the time when it was saved, which for an uploaded seed is after its capture."""

    id: UUID
    agent_id: UUID
    at: datetime


def expired_seeds(
    saved: Iterable[DatedSeed], *, existing: frozenset[UUID], now: datetime
) -> tuple[UUID, ...]:
    """Return the ids of the seeds that are no longer saved; `existing` are the agents that are not destroyed."""
    expired: list[UUID] = []
    counts: dict[UUID, int] = {}
    days: set[tuple[UUID, date]] = set()
    for seed in sorted(saved, key=lambda seed: (seed.at, seed.id), reverse=True):
        if seed.agent_id not in existing:
            if now - seed.at > AFTER_DESTRUCTION:
                expired.append(seed.id)
            continue
        counts[seed.agent_id] = count = counts.get(seed.agent_id, 0) + 1
        day = (seed.agent_id, seed.at.date())
        is_last_of_day = day not in days
        days.add(day)
        if count > LATEST and not (is_last_of_day and now - seed.at <= DAILY):
            expired.append(seed.id)
    return tuple(expired)
