"""External calls: a worker of the model queue takes one, asks the model with no transaction open, stores what came."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections

from apps.heartbeats.models import CallStatus
from apps.heartbeats.services.errands import settle_errand, stumble
from apps.heartbeats.services.ledger import CHARGE, Taken, charge_failure, note_truncated, reply_charge
from apps.heartbeats.services.schedule import advance_message
from apps.heartbeats.services.web_calls import ask_the_web
from apps.providers import model_for
from apps.queues import enqueue
from apps.tenants.encoding import from_json
from apps.tenants.packing import unpack
from apps.tenants.scope import APP, tenant_transaction
from apps.tenants.statements import fetch
from arbor.errors import ModelError, WebFailed
from arbor.heartbeat.json_text import storable
from arbor.heartbeat.questions import request_of
from arbor.models.ports import CallPurpose, ModelReply

log = structlog.get_logger(__name__)

#: Beyond the model's own deadline, the time to store its reply; a summary is embedded before.
_STORING = timedelta(seconds=10)
_ERRAND_STORING = timedelta(seconds=60)

# The heartbeat waits from now on as long as the model may take, however long its call has waited before.
_TAKE = """
WITH taken AS (
    UPDATE heartbeats_externalcall
    SET status = 'running', attempts = attempts + 1, started_at = now(),
        lease_until = now() + CASE subject_key WHEN '' THEN %(lease)s::interval ELSE %(errand_lease)s::interval END
    WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'pending' AND (due_at IS NULL OR due_at <= now())
    RETURNING agent_id, heartbeat_id, model, request, attempts, subject, failures
), waiting AS (
    UPDATE heartbeats_heartbeatschedule s SET lease_until = now() + %(wait)s::interval
    FROM taken JOIN heartbeats_heartbeat h ON h.tenant_id = %(tenant)s AND h.id = taken.heartbeat_id
    WHERE s.tenant_id = %(tenant)s AND s.agent_id = taken.agent_id AND s.epoch = h.epoch AND s.state = 'running'
)
SELECT agent_id, model, request, attempts, subject, failures FROM taken
"""
_END = """
UPDATE heartbeats_externalcall c
SET status = %(status)s, reply = %(reply)s, error = %(error)s, error_kind = %(error_kind)s, ended_at = now(),
    lease_until = NULL
FROM heartbeats_heartbeat h, agents_agent a
WHERE c.tenant_id = %(tenant)s AND c.id = %(call)s AND c.status = 'running' AND c.attempts = %(attempt)s
    AND h.tenant_id = c.tenant_id AND h.id = c.heartbeat_id AND a.tenant_id = c.tenant_id AND a.id = c.agent_id
RETURNING h.epoch, a.name
"""
# What it cost was spent even if the reply came too late to count.
_END_CHARGED = f"WITH ended AS ({_END}), {CHARGE} SELECT epoch, name FROM ended"  # noqa: S608 (our own words)


def fulfil_call(*, call_id: UUID, tenant_id: UUID) -> bool:
    """Ask the model and store its reply or its failure, then let the heartbeat go on, or do what the errand was for.

    Returns False when the call is another worker's, done, or not due yet: a doubled message costs one short read.
    """
    taken = _take(call_id=call_id, tenant_id=tenant_id)
    if taken is None:
        log.info("call_not_pending", call_id=str(call_id))
        return False
    _release_connection()
    started = time.perf_counter()
    try:
        reply = _ask(taken)
    except (ModelError, WebFailed) as error:
        return _store_failure(taken, error, (time.perf_counter() - started) * 1000)
    except Exception as error:
        # A fault in an adapter must end this heartbeat as failed, at once, and not hold its agent for a lease.
        log.exception("model_adapter_fault", model=taken.model)
        return _store_failure(taken, error, (time.perf_counter() - started) * 1000)
    return _store_reply(taken, reply)


def _ask(taken: Taken) -> ModelReply:
    if taken.request.purpose is CallPurpose.WEB:
        return ask_the_web(taken.request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S)
    return model_for(taken.model).complete(taken.request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S)


def _take(*, call_id: UUID, tenant_id: UUID) -> Taken | None:
    deadline = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S)
    lease = deadline + _STORING
    with tenant_transaction(tenant_id):
        rows = fetch(
            _TAKE,
            call=call_id,
            lease=lease,
            errand_lease=deadline + _ERRAND_STORING,
            wait=lease + settings.ARBOR_QUEUE_LEASE,
        )
    if not rows:
        return None
    agent_id, model, request, attempt, subject, failures = rows[0]
    return Taken(
        call_id=call_id,
        tenant_id=tenant_id,
        agent_id=agent_id,
        model=model,
        request=request_of(unpack(request)),
        attempt=attempt,
        subject=from_json(subject),
        failures=failures,
    )


def _release_connection() -> None:
    """Give a pooled connection back: hundreds of calls wait on a few connections."""
    if settings.ARBOR_DB_POOL_SIZE:
        connections[APP].close()


def _store_reply(taken: Taken, reply: ModelReply) -> bool:
    if taken.subject:
        return settle_errand(taken, reply)
    with tenant_transaction(taken.tenant_id):
        stored = _end(
            taken, status=CallStatus.COMPLETE, reply=storable(reply.text), charge=reply_charge(taken, reply)
        )
        note_truncated(taken, reply)
    return stored


def _store_failure(taken: Taken, error: Exception, latency_ms: float) -> bool:
    with tenant_transaction(taken.tenant_id):
        charge_failure(taken, error, latency_ms)
        if taken.subject:
            return stumble(taken, error)
        return _end(
            taken, status=CallStatus.FAILED, error=storable(str(error)), error_kind=type(error).__name__
        )


def _end(
    taken: Taken,
    *,
    status: CallStatus,
    reply: str = "",
    error: str = "",
    error_kind: str = "",
    charge: Mapping[str, Any] | None = None,
) -> bool:
    """Store the end of the call under this worker's lease, and what it cost, and tell the heartbeat's workers.

    Returns False if the lease was lost. One statement.
    """
    rows = fetch(
        _END_CHARGED if charge else _END,
        **{
            **(charge or {}),
            "call": taken.call_id,
            "attempt": taken.attempt,
            "status": status.value,
            "reply": reply,
            "error": error,
            "error_kind": error_kind,
        },
    )
    if not rows:
        log.warning("call_lease_lost", call_id=str(taken.call_id))
        return False
    epoch, name = rows[0]
    enqueue(advance_message(agent_id=taken.agent_id, tenant_id=taken.tenant_id, epoch=epoch, name=name))
    return True
