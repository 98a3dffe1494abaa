"""Purge memories, and find the saved seeds that still contain them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Exists, OuterRef

from apps.fleet.models import SavedSeed
from apps.memories.models import Memory
from apps.memories.services.retention.archive import purge


@dataclass(frozen=True, kw_only=True)
class PurgeReport:
    """The result of a purge: the number of deleted memories, and the saved seeds that contain them, the earliest first."""

    purged: int
    saved_seeds: tuple[UUID, ...]


def purge_memories(*, memory_ids: Sequence[UUID], reason: str, actor: str) -> PurgeReport:
    """Purge archived memories in the open transaction, as `purge` does.

    Seeds are signed, so none is changed: the seeds of their agents that were captured since the memories were stored are reported
    and audited, for a person to delete.
    """
    memories = Memory.objects.filter(
        id__in=memory_ids, agent_id=OuterRef("agent_id"), created_at__lte=OuterRef("at")
    )
    seeds = list(SavedSeed.objects.filter(Exists(memories)).order_by("at").values_list("agent_id", "id"))
    of_agents: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for agent_id, seed_id in seeds:
        of_agents[agent_id].append(seed_id)
    purged = purge(memory_ids=memory_ids, reason=reason, actor=actor, saved_seeds=of_agents)
    return PurgeReport(purged=purged, saved_seeds=tuple(seed_id for _, seed_id in seeds))
