"""Check the limits of reaching out, first by the situation, then by the outbox."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from apps.tenants.statements import fetch
from arbor.contacts.cooldown import refusals
from arbor.heartbeat.situation import Environment

#: What a beat sees of it: a column of the one statement of `apps.heartbeats.services.situation`, counted for those alone that
#: may write in public. One decision may have gone to several channels.
PUBLISHED_COLUMN = """
CASE WHEN a.allowed_actions ? 'reach_out_public' THEN (
    SELECT count(DISTINCT (heartbeat_id, content)) FROM contacts_outboxmessage
    WHERE tenant_id = a.tenant_id AND agent_id = a.id AND audience = 'public'
        AND created_at > now() - interval '24 hours'
) ELSE 0 END AS published_today
"""
# Not counting what this very decision has posted before.
_POSTED = """
SELECT s.last_user_contact_at,
    (SELECT max(created_at) FROM contacts_outboxmessage o
        WHERE o.tenant_id = s.tenant_id AND o.agent_id = s.agent_id AND o.audience = 'user'
            AND NOT starts_with(o.idempotency_key, %(key)s)),
    (SELECT count(DISTINCT (heartbeat_id, content)) FROM contacts_outboxmessage o
        WHERE o.tenant_id = s.tenant_id AND o.agent_id = s.agent_id AND o.audience = 'public'
            AND o.created_at > %(now)s - interval '24 hours' AND NOT starts_with(o.idempotency_key, %(key)s))
FROM agents_agentstate s WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent)s
"""


def seen_refusals(environment: Environment) -> Mapping[str, str]:
    """Return the refusals of reaching out by action, from the situation: to refuse an action before it is paid for."""
    return refusals(
        hours_since_reach_out=environment.hours_since_reach_out,
        hours_since_user=environment.hours_since_user,
        public_today=environment.published_today,
        limits=settings.ARBOR_CONTACT_LIMITS,
    )


def posted_refusals(*, agent_id: UUID, key: str, now: datetime) -> Mapping[str, str]:
    """Return the refusals from the outbox now, earlier round trips of the heartbeat included. One statement."""
    ((user_at, posted_at, published),) = fetch(_POSTED, agent=agent_id, key=key, now=now)
    return refusals(
        hours_since_reach_out=_hours(posted_at, now),
        hours_since_user=_hours(user_at, now),
        public_today=published,
        limits=settings.ARBOR_CONTACT_LIMITS,
    )


def _hours(moment: datetime | None, now: datetime) -> float | None:
    return None if moment is None else max((now - moment) / timedelta(hours=1), 0.0)
