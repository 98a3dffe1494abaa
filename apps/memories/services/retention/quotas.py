"""Count an agent's memories by type, and compare them with the quotas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from apps.memories.services.retention import queries
from apps.memories.services.retention.forgetting import forgetting_policy
from apps.tenants.statements import fetch
from arbor.memory.values import MemoryType

#: The time after which a pin counts as unused if the agent has not recalled its memory.
UNUSED_AFTER = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class QuotaUsage:
    """The numbers of an agent's memories of one type, and the quota."""

    type: MemoryType
    active: int
    #: The number of active memories above which maintenance archives the least important ones.
    quota: int
    archived: int
    #: Active memories that no quota archives: permanent ones, among them the pinned ones.
    permanent: int
    pinned: int
    #: Pins older than UNUSED_AFTER whose memory was not recalled since it was pinned.
    unused_pins: int

    @property
    def share(self) -> float:
        """The share of the quota that is used up; above 1 until the next run of maintenance."""
        return round(self.active / self.quota, 4)


def read_quotas(*, agent_id: UUID) -> Sequence[QuotaUsage]:
    """Return an agent's memories of each type with the quotas. One statement."""
    limits = forgetting_policy()
    counts = {
        kind: numbers
        for kind, *numbers in fetch(queries.COUNT_BY_TYPE, agent=agent_id, unused_after=UNUSED_AFTER)
    }
    usages = []
    for kind in MemoryType:
        active, archived, permanent, pinned, unused = counts.get(kind.value, (0, 0, 0, 0, 0))
        usages.append(
            QuotaUsage(
                type=kind,
                active=active,
                quota=limits.quota_of(kind),
                archived=archived,
                permanent=permanent,
                pinned=pinned,
                unused_pins=unused,
            )
        )
    return usages
