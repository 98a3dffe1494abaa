"""Statements about conversations and the outbox by hand, each with its reason."""

from __future__ import annotations

#: By hand: a column of the statement of `apps.heartbeats.services.situation`. Counted only for those that may write in public;
#: one decision may have gone to several channels.
PUBLISHED_COLUMN = """
CASE WHEN a.allowed_actions ? 'reach_out_public' THEN (
    SELECT count(DISTINCT (heartbeat_id, content)) FROM contacts_outboxmessage
    WHERE tenant_id = a.tenant_id AND agent_id = a.id AND audience = 'public'
        AND created_at > now() - interval '24 hours'
) ELSE 0 END AS published_today
"""
#: By hand: a part of the statement of `apps.memories.services.jobs.rounds`. Along the index of open conversations; one that waits
#: for its answer is examined once its message may have been lost.
IDLE_CONVERSATIONS = """
SELECT DISTINCT agent_id FROM contacts_chatsession
WHERE tenant_id = t.id AND ended_at IS NULL AND last_at < now() - interval '{seconds} seconds'
    AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
"""
#: By hand: one update of rows of all tenants, which skips those that another sweep has locked. Those of suspended
#: tenants rest, and a message is not enqueued again before the lease of its hint ends.
LEASE_DUE_MESSAGES = """
WITH due AS MATERIALIZED (
    SELECT m.tenant_id, m.id FROM contacts_outboxmessage m
    JOIN tenants_tenant t ON t.id = m.tenant_id AND t.status = %(active)s
    WHERE m.status = 'pending' AND m.due_at <= now() AND (m.lease_until IS NULL OR m.lease_until < now())
    ORDER BY m.due_at LIMIT %(budget)s FOR UPDATE OF m SKIP LOCKED
)
UPDATE contacts_outboxmessage m SET lease_until = now() + %(lease_s)s * interval '1 second' FROM due
WHERE m.tenant_id = due.tenant_id AND m.id = due.id
RETURNING m.id, m.tenant_id, m.kind
"""
#: By hand for the same reason. Whether the receiver has the message is not known: the next try has the same key.
RETRY_LOST_MESSAGES = """
WITH lost AS MATERIALIZED (
    SELECT m.tenant_id, m.id FROM contacts_outboxmessage m
    JOIN tenants_tenant t ON t.id = m.tenant_id AND t.status = %(active)s
    WHERE m.status = 'sending' AND m.lease_until < now() AND m.attempts - m.tries_before < %(tries)s
    ORDER BY m.lease_until LIMIT %(budget)s FOR UPDATE OF m SKIP LOCKED
)
UPDATE contacts_outboxmessage m
SET status = 'pending', due_at = now() + (%(waits)s::interval[])[m.attempts - m.tries_before], lease_until = NULL,
    last_error = 'the worker of try ' || m.attempts || ' did not come back; whether the message arrived is not known'
FROM lost WHERE m.tenant_id = lost.tenant_id AND m.id = lost.id
RETURNING m.id
"""
