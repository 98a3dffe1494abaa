"""Intents that a heartbeat takes in hand: locked under its id until their outcome is known."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from apps.tenants.statements import change
from arbor.goals.intents import STALE_LOCK

# A lock of a heartbeat that is gone is taken over as `arbor.goals.intents.is_stale_lock` says.
_LOCK = """
UPDATE goals_intent i SET status = 'locked', locked_by = %(beat)s, locked_at = now(),
    ticks_used = ticks_used + CASE WHEN id = ANY(%(again)s::uuid[]) THEN 0 ELSE 1 END
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND id = ANY(%(ids)s::uuid[]) AND (
    status = 'pending' OR (status = 'locked' AND locked_by <> %(beat)s AND locked_at <= now() - %(stale)s::interval
        AND NOT EXISTS (
            SELECT FROM heartbeats_heartbeat h
            WHERE h.tenant_id = i.tenant_id AND h.id = i.locked_by AND h.status IN ('running', 'waiting')
        ))
)
"""


def lock_intents(
    *, agent_id: UUID, heartbeat_id: UUID, intent_ids: Sequence[UUID], again: Sequence[UUID] = ()
) -> int:
    """Lock an agent's intents for a heartbeat and count it as spent on them, but not `again`; return how many there were.

    One statement, none where there is nothing to lock.
    """
    if not intent_ids:
        return 0
    return change(
        _LOCK,
        agent=agent_id,
        beat=heartbeat_id,
        ids=list(intent_ids),
        again=list(again),
        stale=STALE_LOCK,
    )
