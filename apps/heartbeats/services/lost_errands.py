"""Errands that were lost: those that no worker has taken are told of again, those whose worker was lost tried again."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.heartbeats.models import CallStatus
from apps.heartbeats.services.call_leases import LeasedCall
from apps.heartbeats.services.errands import record_failed_try
from apps.heartbeats.services.schedule import execute_message
from apps.heartbeats.services.usage import day_of
from apps.memories.services.jobs.rounds import Round, make_round
from apps.queues import enqueue
from apps.tenants.packing import unpack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.models.handles import REFLEX
from arbor.models.ports import ModelRequest

#: The longest that a hint which nobody has followed is believed in before it is repeated.
_LONGEST_BELIEF = timedelta(hours=1)
#: Errands of one agent that one step tells of again.
_RECOVERED = 100

# Those of suspended tenants rest.
_LOST = """
SELECT DISTINCT agent_id FROM heartbeats_externalcall
WHERE tenant_id = t.id AND errand_status IN ('pending', 'running') AND errand_lease < now()
    AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
"""
_TAKE_LOST = """
SELECT c.id, c.status, c.model, c.request, c.attempts, c.subject, c.failures, a.name
FROM heartbeats_externalcall c JOIN agents_agent a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND c.errand_status IN ('pending', 'running')
    AND c.errand_lease < now()
ORDER BY c.id LIMIT %(limit)s FOR UPDATE OF c SKIP LOCKED
"""
# Told again after as long as it has waited: a fleet that is away for hours does not find a mountain of messages. Of a
# conversation's call it is noted: who asked is lost, and workers ask until there is an answer.
_TELL = """
UPDATE heartbeats_externalcall
SET lease_until = now() + least(%(longest)s, greatest(%(lease)s, now() - requested_at)),
    subject = CASE purpose WHEN 'chat' THEN subject || '{"told": true}' ELSE subject END
WHERE tenant_id = %(tenant)s AND id = ANY(%(calls)s::uuid[])
"""


class _WorkerLost(Exception):
    """No worker came back with an answer."""


def recover_errands() -> Round:
    """Tell the workers again of errands that nobody has taken, and let those whose worker was lost be tried again."""
    return make_round("errands", waiting=_LOST, tend=_recover)


def _recover(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        rows = fetch(_TAKE_LOST, agent=agent_id, limit=_RECOVERED)
        silent = [row for row in rows if row[1] == CallStatus.PENDING]
        if silent and not day_of(agent_id).level.may_tend:
            # They stay due, and the next day brings them; only people, who wait, are answered now. Rules cost nothing.
            silent = [
                row for row in silent if row[2].startswith(f"{REFLEX}/") or "chat" in json.loads(row[5])
            ]
        told = [(row[0], row[-1]) for row in silent]
        for row in rows:
            if row[1] == CallStatus.RUNNING:
                lost = _WorkerLost(f"worker {row[4]} took it and did not come back")
                record_failed_try(_taken(tenant_id, agent_id, row), lost)
        if told:
            calls = [call_id for call_id, _ in told]
            change(_TELL, calls=calls, lease=settings.ARBOR_QUEUE_LEASE, longest=_LONGEST_BELIEF)
        for call_id, name in told:
            enqueue(execute_message(call_id=call_id, tenant_id=tenant_id, agent_name=name))
    return len(rows)


def _taken(tenant_id: UUID, agent_id: UUID, row: tuple[Any, ...]) -> LeasedCall:
    call_id, _, model, request, attempt, subject, failures, _ = row
    return LeasedCall(
        call_id=call_id,
        tenant_id=tenant_id,
        agent_id=agent_id,
        model=model,
        request=ModelRequest.from_json(unpack(request)),
        attempt=attempt,
        subject=json.loads(subject),
        failures=failures,
    )
