"""Handwritten statements about conversations, the outbox and webhooks, each with its reason."""

from __future__ import annotations

#: A column of the statement in `apps.heartbeats.services.situations.situation`. Counted only for agents that may write in public; a
#: decision counts once for all its channels.
PUBLISHED_COLUMN = """
CASE WHEN a.id = ANY(%(publishing)s::uuid[]) THEN (
    SELECT count(DISTINCT (heartbeat_id, content)) FROM contacts_outboxmessage
    WHERE tenant_id = a.tenant_id AND agent_id = a.id AND audience = 'public'
        AND created_at > now() - interval '24 hours'
) ELSE 0 END AS published_today
"""
#: The latest texts for people and what became of them, as arrays in the order in which `arbor.heartbeat.influence` unpacks them. Read
#: for agents that may write.
PUBLICATIONS_COLUMN = """
CASE WHEN a.id = ANY(%(publishing)s::uuid[]) OR a.id = ANY(%(writing)s::uuid[]) THEN (
    SELECT coalesce(json_agg(json_build_array(
        text.audience, text.content, text.created_at, text.status, text.error, text.is_read, text.answers, text.last_answer)), '[]')
    FROM (
        SELECT audience, left(content, 300) AS content, created_at, status,
            left(last_error, 200) AS error, read_at IS NOT NULL AS is_read, answers, last_answer
        FROM contacts_outboxmessage
        WHERE tenant_id = %(tenant)s AND agent_id = a.id ORDER BY created_at DESC, id DESC LIMIT %(publications)s
    ) text
) ELSE '[]' END AS publications
"""
#: One statement for each sentence of a reply. An attempt that another worker has replaced changes nothing.
PUBLISH_SENTENCES = """
INSERT INTO contacts_partialreply AS p (tenant_id, turn_id, attempt, sentences)
VALUES (%(tenant)s, %(turn)s, %(attempt)s::int, %(sentences)s::jsonb)
ON CONFLICT (tenant_id, turn_id) DO UPDATE SET attempt = excluded.attempt,
    sentences = CASE p.attempt WHEN excluded.attempt THEN p.sentences ELSE '[]' END || excluded.sentences
WHERE p.attempt <= excluded.attempt
"""
#: One statement, because readers of a growing reply run it several times a second.
REPLY_PROGRESS = """
SELECT p.attempt, p.sentences, a.id, a.content, a.error, a.model, a.detail
FROM contacts_chatmessage t
LEFT JOIN contacts_partialreply p ON p.tenant_id = t.tenant_id AND p.turn_id = t.id
LEFT JOIN LATERAL (
    SELECT m.id, m.content, m.error, m.model, m.detail FROM contacts_chatmessage m
    WHERE m.tenant_id = t.tenant_id AND m.session_id = t.session_id AND m.at >= t.at AND m.speaker = 'agent'
        AND m.detail ->> 'to' = t.id::text
    LIMIT 1
) a ON true
WHERE t.tenant_id = %(tenant)s AND t.id = %(turn)s AND t.speaker = 'user'
"""
#: A part of the statement in `apps.memories.services.jobs.job_runs`; uses the index of open conversations. A conversation that
#: waits for an answer is included once its message may be lost.
IDLE_CONVERSATIONS = """
SELECT DISTINCT agent_id FROM contacts_chatsession
WHERE tenant_id = t.id AND ended_at IS NULL AND last_at < now() - interval '{seconds} seconds'
    AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
"""
#: One update of rows of all tenants, which skips rows locked by another sweep and suspended tenants. A message is not
#: enqueued again before the lease of its hint ends.
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
#: One update, for the reasons of LEASE_DUE_MESSAGES. The receiver may have got the message already, so the next try has the same key.
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
#: Lease the webhooks of active tenants that have unread signals, or a delivery that a person resends. A position begins with the id of a
#: row of signals; it is compared with the latest row, because EXISTS would read the whole table where nothing is new.
LEASE_WAITING_WEBHOOKS = """
WITH waiting AS MATERIALIZED (
    SELECT w.tenant_id, w.id FROM contacts_signalwebhook w
    JOIN tenants_tenant t ON t.id = w.tenant_id AND t.status = %(active)s
    WHERE w.active AND w.due_at <= now() AND ((
        SELECT s.id FROM signals_signalbatch s WHERE s.tenant_id = w.tenant_id ORDER BY s.id DESC LIMIT 1
    ) >= split_part(w.position, '.', 1)::uuid OR EXISTS (
        SELECT FROM contacts_hookdelivery d
        WHERE d.tenant_id = w.tenant_id AND d.webhook_id = w.id AND d.status = 'resending'
    ))
    ORDER BY w.due_at LIMIT %(budget)s FOR UPDATE OF w SKIP LOCKED
)
UPDATE contacts_signalwebhook w SET lease = w.lease + 1, due_at = now() + %(lease_s)s * interval '1 second' FROM waiting
WHERE w.tenant_id = waiting.tenant_id AND w.id = waiting.id
RETURNING w.id, w.tenant_id, w.lease
"""
