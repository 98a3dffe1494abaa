"""Mark agents whose memories grew quickly, so that their quota is enforced soon and not a day later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings

#: Memories stored at once from which an agent's quota is looked at soon. Fewer, such as a heartbeat's, wait for the daily
#: look: a day of heartbeats is a hundredth of the quota.
GROWS_BY = 20

#: Make the next round check the quota of agents that exceed it by this many new memories at once: a part
#: of the statement that stores the memories, which sees the count from before. Term 0 counts all that an agent has in
#: mind, of which the quota is a part. Its values are `growth(…)`.
MARK_GROWN = """
UPDATE memories_mind k SET counted_at = NULL
FROM unnest(%(grown_agents)s::uuid[], %(grown)s::int[]) AS g(agent_id, grown)
WHERE k.tenant_id = %(tenant)s AND k.agent_id = g.agent_id AND k.counted_at IS NOT NULL AND EXISTS (
    SELECT FROM memories_term t
    WHERE t.tenant_id = %(tenant)s AND t.agent_id = g.agent_id AND t.term = 0 AND t.memories + g.grown > %(quota)s
)
"""


def growth(stored: Mapping[UUID, int]) -> dict[str, Any]:
    """Return the values of MARK_GROWN for the numbers of new memories by agent."""
    grown = sorted((agent_id, count) for agent_id, count in stored.items() if count >= GROWS_BY)
    return {
        "grown_agents": [agent_id for agent_id, _ in grown],
        "grown": [count for _, count in grown],
        "quota": settings.ARBOR_MEMORY_QUOTA,
    }
