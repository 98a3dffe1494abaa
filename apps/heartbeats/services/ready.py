"""Claim heartbeats whose replies have come, so that a batch with room walks them before their own messages arrive."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.conf import settings

from apps.tenants.statements import fetch

# Heartbeats that another worker has locked go on there. State and lease are committed before the walk: should its worker
# die of one of them, no other worker claims that one here, and its lease brings it back alone.
_CLAIM_READY = """
WITH ready AS MATERIALIZED (
    SELECT s.agent_id FROM heartbeats_heartbeatschedule s
    JOIN heartbeats_heartbeat h ON h.tenant_id = s.tenant_id AND h.agent_id = s.agent_id AND h.status = 'waiting'
    CROSS JOIN LATERAL (
        SELECT status FROM heartbeats_externalcall
        WHERE tenant_id = %(tenant)s AND heartbeat_id = h.id ORDER BY requested_at DESC LIMIT 1
    ) c
    WHERE s.tenant_id = %(tenant)s AND s.in_flight AND s.state = 'running' AND s.agent_id <> ALL(%(besides)s::uuid[])
        AND h.epoch = s.epoch AND c.status IN ('complete', 'failed')
    LIMIT %(most)s FOR UPDATE OF s SKIP LOCKED
)
UPDATE heartbeats_heartbeatschedule s SET state = 'queued', lease_until = now() + %(lease)s
FROM ready WHERE s.tenant_id = %(tenant)s AND s.agent_id = ready.agent_id
RETURNING s.agent_id, s.epoch
"""


def claim_ready(*, besides: Sequence[UUID], most: int) -> list[tuple[UUID, int]]:
    """Claim up to `most` heartbeats that can go on with a reply, of other agents than these; return their leases.

    Their epochs stay: their own messages find them gone on, or take them if this worker dies.
    """
    return [
        (agent_id, epoch)
        for agent_id, epoch in fetch(
            _CLAIM_READY, besides=list(besides), most=most, lease=settings.ARBOR_QUEUE_LEASE
        )
    ]
