"""External calls: a worker of the model queue takes one, asks the model with no transaction open, stores what came."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import CallStatus
from apps.heartbeats.services.schedule import advance_message
from apps.providers import model_for
from apps.queues import Message, Task, enqueue
from apps.tenants.scope import APP, tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.errors import ModelError, ModelRefused
from arbor.heartbeat.json_text import storable
from arbor.ids import uuid7
from arbor.models.ports import ModelReply, ModelRequest, Usage

log = structlog.get_logger(__name__)

#: Beyond the model's own deadline, the time to store its reply.
_STORING = timedelta(seconds=10)
#: Longest model name that the ledger holds.
MODEL_LENGTH = 200

_TAKE = """
UPDATE heartbeats_externalcall
SET status = 'running', attempts = attempts + 1, started_at = now(), lease_until = now() + %(lease)s
WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'pending'
RETURNING agent_id, model, request, attempts
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
_KEEP_WAITING = """
UPDATE heartbeats_heartbeatschedule s SET lease_until = now() + %(lease)s
FROM heartbeats_externalcall c JOIN heartbeats_heartbeat h ON h.tenant_id = c.tenant_id AND h.id = c.heartbeat_id
WHERE c.tenant_id = %(tenant)s AND c.id = %(call)s
    AND s.tenant_id = c.tenant_id AND s.agent_id = c.agent_id AND s.epoch = h.epoch AND s.state = 'running'
"""
_CHARGE = """
INSERT INTO heartbeats_ledgerentry (tenant_id, id, agent_id, call_id, purpose, provider, model, input_tokens,
    output_tokens, cached_tokens, cost_usd, latency_ms, tries, error_kind, at)
VALUES (%(tenant)s, %(id)s, %(agent)s, %(call)s, %(purpose)s, %(provider)s, %(model)s, %(input)s,
    %(output)s, %(cached)s, %(cost)s, %(latency)s, %(tries)s, %(error_kind)s, now())
"""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A call this worker has; `attempt` is the token of its lease."""

    call_id: UUID
    tenant_id: UUID
    agent_id: UUID
    model: str
    request: ModelRequest
    attempt: int


def fulfil_message(*, call_id: UUID, tenant_id: UUID, agent_name: str) -> Message:
    """Return the hint that a call waits for a worker."""
    return Message(
        task=Task.FULFIL,
        tenant_id=tenant_id,
        arguments={"call_id": str(call_id)},
        shown=f"agent={agent_name} call={call_id}",
    )


def fulfil_call(*, call_id: UUID, tenant_id: UUID) -> bool:
    """Ask the model and store its reply or its failure, then let the heartbeat go on.

    Returns False when the call is another worker's, or done: a doubled message costs one short read.
    """
    taken = _take(call_id=call_id, tenant_id=tenant_id)
    if taken is None:
        log.info("call_not_pending", call_id=str(call_id))
        return False
    _release_connection()
    started = time.perf_counter()
    try:
        reply = model_for(taken.model).complete(taken.request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S)
    except ModelError as error:
        return _store_failure(taken, error, (time.perf_counter() - started) * 1000)
    except Exception as error:
        # A fault in an adapter must end this heartbeat as failed, at once, and not hold its agent for a lease.
        log.exception("model_adapter_fault", model=taken.model)
        return _store_failure(taken, error, (time.perf_counter() - started) * 1000)
    return _store_reply(taken, reply)


def _take(*, call_id: UUID, tenant_id: UUID) -> Taken | None:
    lease = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S) + _STORING
    with tenant_transaction(tenant_id):
        rows = fetch(_TAKE, call=call_id, lease=lease)
        if rows:
            # The heartbeat waits from now on as long as the model may take, however long its call has waited before.
            change(_KEEP_WAITING, call=call_id, lease=lease + settings.ARBOR_QUEUE_LEASE)
    if not rows:
        return None
    agent_id, model, request, attempt = rows[0]
    return Taken(
        call_id=call_id,
        tenant_id=tenant_id,
        agent_id=agent_id,
        model=model,
        request=ModelRequest.from_json(json.loads(request)),
        attempt=attempt,
    )


def _release_connection() -> None:
    """Give a pooled connection back: hundreds of calls wait on a few connections."""
    if settings.ARBOR_DB_POOL_SIZE:
        connections[APP].close()


def _store_reply(taken: Taken, reply: ModelReply) -> bool:
    with tenant_transaction(taken.tenant_id):
        stored = _end(taken, status=CallStatus.COMPLETE, reply=storable(reply.text))
        # What it cost was spent even if the reply came too late to count.
        _charge(
            taken,
            provider=reply.provider,
            model=storable(reply.model)[:MODEL_LENGTH],
            usage=reply.usage,
            cost_usd=reply.cost_usd,
            latency_ms=reply.latency_ms,
            tries=reply.attempts,
        )
        if reply.finish_reason == "length":
            record(
                action=AuditAction.TRUNCATED,
                actor="system:model",
                agent_id=taken.agent_id,
                message=f"{taken.model} stopped at {taken.request.max_tokens} tokens, in the middle of its reply",
                detail={"call_id": str(taken.call_id), "output_tokens": reply.usage.output_tokens},
            )
    return stored


def _store_failure(taken: Taken, error: Exception, latency_ms: float) -> bool:
    kind = type(error).__name__
    with tenant_transaction(taken.tenant_id):
        stored = _end(taken, status=CallStatus.FAILED, error=storable(str(error)), error_kind=kind)
        if isinstance(error, ModelError) and error.attempts:
            provider, _, model = taken.model.partition("/")
            usage = (error.usage if isinstance(error, ModelRefused) else None) or Usage()
            _charge(
                taken,
                provider=provider,
                model=model,
                usage=usage,
                cost_usd=None,
                latency_ms=latency_ms,
                tries=error.attempts,
                error_kind=kind,
            )
    return stored


def _charge(
    taken: Taken,
    *,
    provider: str,
    model: str,
    usage: Usage,
    cost_usd: Decimal | None,
    latency_ms: float,
    tries: int,
    error_kind: str = "",
) -> None:
    change(
        _CHARGE,
        id=uuid7(),
        agent=taken.agent_id,
        call=taken.call_id,
        purpose=taken.request.purpose.value,
        provider=provider,
        model=model,
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cached_tokens,
        cost=cost_usd,
        latency=latency_ms,
        tries=tries,
        error_kind=error_kind,
    )


def _end(taken: Taken, *, status: CallStatus, reply: str = "", error: str = "", error_kind: str = "") -> bool:
    """Store the end of the call under this worker's lease, and tell the heartbeat's workers; False if it was lost."""
    rows = fetch(
        _END,
        call=taken.call_id,
        attempt=taken.attempt,
        status=status.value,
        reply=reply,
        error=error,
        error_kind=error_kind,
    )
    if not rows:
        log.warning("call_lease_lost", call_id=str(taken.call_id))
        return False
    epoch, name = rows[0]
    enqueue(advance_message(agent_id=taken.agent_id, tenant_id=taken.tenant_id, epoch=epoch, name=name))
    return True
