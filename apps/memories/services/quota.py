"""How much an agent keeps in mind: told when it has grown, so that its quota holds soon after and not a day later."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings

from apps.tenants.statements import change

#: Memories stored at once from which an agent's quota is looked at soon. Fewer, such as a heartbeat's, wait for the daily
#: look: a day of beats is a hundredth of the quota.
GROWS_BY = 20

# Term 0 counts all that the agent has in mind, of which the quota is a part.
_CROWDED = """
UPDATE memories_mind SET counted_at = NULL
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND counted_at IS NOT NULL AND EXISTS (
    SELECT FROM memories_term
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND term = 0 AND memories > %(quota)s
)
"""


def note_growth(agent_id: UUID, *, stored: int) -> None:
    """Let the next round look at the agent's quota, if it has just stored many and has more than that. One statement."""
    if stored >= GROWS_BY:
        change(_CROWDED, agent=agent_id, quota=settings.ARBOR_MEMORY_QUOTA)
