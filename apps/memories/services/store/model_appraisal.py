"""Store importances that a model appraised, averaged with those by rule, where an operator has asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from apps.memories.services.jobs.maintenance_flags import MaintenanceFlag, claim_still_waiting, end_waiting
from apps.tenants.statements import change, fetch
from arbor.memory.maintenance_calls import weighed

_IMPORTANCE = """
SELECT id, importance FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE
"""
# One bounded update for a batch: the memory's row, otherwise cold, is written once after it was stored.
_WRITE = """
UPDATE memories_memory m SET importance = r.importance
FROM unnest(%(ids)s::uuid[], %(importances)s::float8[]) AS r (id, importance)
WHERE m.tenant_id = %(tenant)s AND m.id = r.id AND m.importance <> r.importance
"""


def store_weights(agent_id: UUID, scores: Mapping[UUID, float]) -> int:
    """Give memories the mean of their importance and a model's, in the open transaction; return how many still waited.

    `scores` are from 0 to 1. What was to be remembered for good, with an importance of 1, keeps it.
    """
    mine = claim_still_waiting(agent_id, MaintenanceFlag.WEIGH, list(scores))
    if not mine:
        return 0
    importances = {
        memory_id: weighed(importance, scores[memory_id])
        for memory_id, importance in fetch(_IMPORTANCE, agent=agent_id, ids=mine)
    }
    change(_WRITE, ids=list(importances), importances=list(importances.values()))
    return end_waiting(MaintenanceFlag.WEIGH, mine)
