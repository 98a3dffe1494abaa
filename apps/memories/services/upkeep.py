"""Maintenance of memories: it decides nothing. Each call is bounded, idempotent, and says what it did."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from apps.audit.models import AuditAction
from apps.memories.services.archive import archive
from apps.memories.services.forgetting import ACTOR, STEP, take_mind
from apps.memories.services.rounds import Round, make_round
from apps.tenants.models import Tenant
from apps.tenants.scope import OPS, tenant_transaction
from apps.tenants.statements import change, fetch

#: A text nobody has embedded for so long is embedded anew when it comes back.
CACHE_KEPT = timedelta(days=30)

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
        if not take_mind(agent_id):
            return 0
        ids = [row[0] for row in fetch(_EXPIRED, agent=agent_id, step=STEP)]
        if ids:
            archive(
                memory_ids=ids, reason="their time was over", actor=ACTOR, action=AuditAction.MEMORIES_EXPIRED
            )
        return len(ids)


def trim_embedding_cache() -> int:
    """Delete cached vectors that were not used for a month; return how many."""
    done = 0
    for tenant_id in Tenant.objects.using(OPS).values_list("id", flat=True):
        trimmed = _TRIMMED
        while trimmed == _TRIMMED:
            with tenant_transaction(tenant_id):
                trimmed = change(_TRIM, kept=CACHE_KEPT, most=_TRIMMED)
            done += trimmed
    return done
