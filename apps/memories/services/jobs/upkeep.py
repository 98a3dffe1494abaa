"""Periodic maintenance of memories. Each call is bounded, idempotent, and returns a count."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import DatabaseError

from apps.audit.models import AuditAction
from apps.memories.services.jobs.rounds import Round, make_round
from apps.memories.services.retention.archive import archive
from apps.memories.services.retention.forgetting import ACTOR, STEP, try_lock_mind
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import change, fetch

log = structlog.get_logger(__name__)

#: Age at which an unused cached vector is deleted; the text is embedded again if it returns.
CACHE_KEPT = timedelta(days=30)
#: How long one call goes on: what is left is trimmed in the next hour.
CACHE_TRIM_TAKES = timedelta(seconds=60)

# Agents with something to expire, by what is over the longest; those that were passed over hide nobody.
_OVER = """
SELECT DISTINCT agent_id FROM (
    SELECT agent_id FROM memories_memory
    WHERE tenant_id = t.id AND expires_at <= now() AND status = 'active' AND agent_id <> ALL(%(passed)s::uuid[])
    ORDER BY expires_at LIMIT 1000
) expired
"""
_EXPIRED = """
SELECT id FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND expires_at <= now() AND status = 'active'
ORDER BY expires_at LIMIT %(step)s
"""
_TRIM = """
DELETE FROM memories_embeddingcacheentry WHERE tenant_id = %(tenant)s AND (model, content_hash) IN (
    SELECT model, content_hash FROM memories_embeddingcacheentry
    WHERE tenant_id = %(tenant)s AND used_at < now() - %(kept)s ORDER BY used_at LIMIT %(most)s
)
"""
#: Entries that are deleted in one transaction.
_TRIMMED = 5_000


def expire_memories() -> Round:
    """Archive the memories whose time is over, agent by agent."""
    return make_round("expire", waiting=_OVER, tend=_expire)


def _expire(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        ids = [row[0] for row in fetch(_EXPIRED, agent=agent_id, step=STEP)]
        if ids:
            archive(
                memory_ids=ids, reason="their time was over", actor=ACTOR, action=AuditAction.MEMORIES_EXPIRED
            )
        return len(ids)


def trim_embedding_cache() -> Round:
    """Delete cached vectors that were not used for a month, a step of each tenant in turn, until CACHE_TRIM_TAKES is over."""
    ends_at = time.monotonic() + CACHE_TRIM_TAKES.total_seconds()
    steps = done = failed = 0
    left: list[UUID] = list(Tenant.objects.using(OPS).order_by("?").values_list("id", flat=True))
    while left and time.monotonic() < ends_at:
        tenant_id = left.pop(0)
        steps += 1
        try:
            with tenant_transaction(tenant_id):
                trimmed = change(_TRIM, kept=CACHE_KEPT, most=_TRIMMED)
        except DatabaseError:
            # One tenant's fault is on record, and the others' caches are trimmed.
            log.exception("cache_trim_failed", tenant_id=str(tenant_id))
            failed += 1
            continue
        done += trimmed
        if trimmed == _TRIMMED:
            left.append(tenant_id)
    return Round(steps=steps, done=done, failed=failed)
