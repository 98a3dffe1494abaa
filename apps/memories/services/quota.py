"""How much an agent keeps in mind: told when it has grown, so that its quota holds soon after and not a day later."""

from __future__ import annotations

from django.conf import settings

#: Memories stored at once from which an agent's quota is looked at soon. Fewer, such as a heartbeat's, wait for the daily
#: look: a day of beats is a hundredth of the quota.
GROWS_BY = 20

#: Lets the next round look at the quota of an agent that gets so many at once that it has more in mind than that: a part of
#: the statement that stores them, which sees the count from before. Term 0 counts all that the agent has in mind, of which
#: the quota is a part. Its values are `growth(…)`.
MARK_GROWN = f"""
UPDATE memories_mind SET counted_at = NULL
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND counted_at IS NOT NULL AND %(grown)s >= {GROWS_BY} AND EXISTS (
    SELECT FROM memories_term
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND term = 0 AND memories + %(grown)s > %(quota)s
)
"""  # noqa: S608 (our own number)


def growth(*, stored: int) -> dict[str, int]:
    """Return the values of MARK_GROWN for so many new memories."""
    return {"grown": stored, "quota": settings.ARBOR_MEMORY_QUOTA}
