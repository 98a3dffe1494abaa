"""External calls: a worker of the model queue takes one, asks the model with no transaction open, stores what came."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections
from django.db.models import F
from django.db.models.functions import Now

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import CallStatus, ExternalCall, LedgerEntry
from apps.heartbeats.services.schedule import advance_message
from apps.providers import model_for
from apps.queues import Message, Task, enqueue
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import ModelError, ModelRefused
from arbor.models.ports import ModelReply, ModelRequest, Usage

log = structlog.get_logger(__name__)

#: Beyond the model's own deadline, the time to store its reply.
_STORING = timedelta(seconds=10)


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
    with tenant_transaction(tenant_id):
        call = ExternalCall.objects.select_for_update().filter(id=call_id, status=CallStatus.PENDING).first()
        if call is None:
            return None
        attempt = call.attempts + 1
        ExternalCall.objects.filter(id=call_id).update(
            status=CallStatus.RUNNING,
            attempts=attempt,
            started_at=Now(),
            lease_until=Now() + timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S) + _STORING,
        )
        return Taken(
            call_id=call_id,
            tenant_id=tenant_id,
            agent_id=call.agent_id,
            model=call.model,
            request=ModelRequest.from_json(call.request),
            attempt=attempt,
        )


def _release_connection() -> None:
    """Give a pooled connection back: hundreds of calls wait on a few connections."""
    if settings.ARBOR_DB_POOL_SIZE:
        connections[APP].close()


def _store_reply(taken: Taken, reply: ModelReply) -> bool:
    with tenant_transaction(taken.tenant_id):
        text = reply.text.replace("\0", "\N{REPLACEMENT CHARACTER}")
        if not _end(taken, status=CallStatus.COMPLETE, reply=text):
            return False
        _charge(
            taken,
            provider=reply.provider,
            model=reply.model,
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
    return True


def _store_failure(taken: Taken, error: Exception, latency_ms: float) -> bool:
    kind = type(error).__name__
    with tenant_transaction(taken.tenant_id):
        if not _end(taken, status=CallStatus.FAILED, error=str(error), error_kind=kind):
            return False
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
    return True


def _charge(taken: Taken, *, usage: Usage, **values: Any) -> None:
    LedgerEntry.objects.create(
        tenant_id=taken.tenant_id,
        agent_id=taken.agent_id,
        call_id=taken.call_id,
        purpose=taken.request.purpose.value,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        **values,
    )


def _end(taken: Taken, **values: Any) -> bool:
    """Store the end of the call under this worker's lease, and tell the heartbeat's workers; False if it was lost."""
    ended = ExternalCall.objects.filter(
        id=taken.call_id, status=CallStatus.RUNNING, attempts=taken.attempt
    ).update(ended_at=Now(), lease_until=None, **values)
    if not ended:
        log.warning("call_lease_lost", call_id=str(taken.call_id))
        return False
    epoch, name = (
        ExternalCall.objects.filter(id=taken.call_id)
        .annotate(epoch=F("heartbeat__epoch"), name=F("agent__name"))
        .values_list("epoch", "name")
        .get()
    )
    enqueue(advance_message(agent_id=taken.agent_id, tenant_id=taken.tenant_id, epoch=epoch, name=name))
    return True
