"""Count reinforcements of memories, and set the maintenance flags of restored ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from apps.tenants.statements import change

_REINFORCE = """
INSERT INTO memories_memoryaccess (tenant_id, memory_id, count, reinforced, reinforced_at)
SELECT %(tenant)s, r.id, 0, r.times, now() FROM unnest(%(ids)s::uuid[], %(times)s::int[]) AS r(id, times) ORDER BY r.id
ON CONFLICT (tenant_id, memory_id) DO UPDATE
SET reinforced = memories_memoryaccess.reinforced + EXCLUDED.reinforced, reinforced_at = EXCLUDED.reinforced_at
"""
_SET_FLAGS = """
UPDATE memories_upkeep u SET stale = true, unclustered = true, unextracted = NOT EXISTS (
    SELECT FROM memories_memoryconcept c WHERE c.tenant_id = u.tenant_id AND c.memory_id = u.memory_id
)
WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[])
"""


def reinforce(times: Mapping[UUID, int]) -> None:
    """Count how often each memory was remembered again; their decay starts again. One statement."""
    change(_REINFORCE, ids=list(times), times=list(times.values()))


def take_up(memory_ids: Sequence[UUID]) -> None:
    """Set the maintenance flags of memories that were archived. One statement."""
    change(_SET_FLAGS, ids=list(memory_ids))
