"""Settle maintenance calls: apply their replies, and schedule their retries.

A reply is applied in the transaction that stores it: once or not at all. Failed tries, those of lost workers (`recovery`) among
them, are repeated with growing delays until the call is marked as failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from psycopg.types.json import Jsonb

from apps.calls.services.leased_calls import LeasedCall, execution_message
from apps.calls.services.ledger import charge_reply, record_truncation
from apps.maintenance.services.purposes import PURPOSES
from apps.queues import enqueue
from apps.tenants.packing import pack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.errors import ModelTimeout, ModelUnavailable, ReplyInvalid
from arbor.memory.maintenance.calls import retry_request
from arbor.models.json_text import storable
from arbor.models.ports import ModelReply, ModelRequest

log = structlog.get_logger(__name__)

#: The delay after each failed try. The call has failed when its try after the last delay fails.
RETRY_DELAYS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=25))
#: The most immediate retries after unreadable replies that somebody waits for (seed 003, 10.7).
MAX_IMMEDIATE_RETRIES = 2

_COMPLETE = """
UPDATE calls_externalcall
SET status = 'complete', reply = %(reply)s, error = '', error_kind = '', ended_at = now(), lease_until = NULL,
    due_at = NULL
WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'running' AND attempts = %(attempt)s
"""
_ADD_NOTES = """
UPDATE calls_externalcall SET dropped = dropped || %(notes)s
WHERE tenant_id = %(tenant)s AND id = %(call)s
"""
_SCHEDULE_RETRY = """
UPDATE calls_externalcall
SET status = 'pending', reply = %(reply)s, error = %(error)s, error_kind = %(kind)s, failures = failures + 1,
    due_at = now() + %(delay)s, lease_until = now() + %(lease)s, request = %(request)s, model = %(model)s,
    subject = %(subject)s
WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'running' AND attempts = %(attempt)s
RETURNING (SELECT name FROM agents_agent a WHERE a.tenant_id = %(tenant)s AND a.id = agent_id)
"""
_GIVE_UP = """
UPDATE calls_externalcall
SET status = 'failed', reply = %(reply)s, error = %(error)s, error_kind = %(kind)s, failures = failures + 1,
    ended_at = now(), lease_until = NULL, due_at = NULL
WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'running' AND attempts = %(attempt)s
"""


def settle_maintenance_call(call: LeasedCall, *, reply: ModelReply) -> bool:
    """Read, store and apply a reply, in one transaction; return False if this worker's lease was lost.

    An unusable reply and an error in applying it are failed tries, of which only the reply's text is stored.
    """
    purpose = PURPOSES[call.request.purpose]
    try:
        read = purpose.read(call.subject, reply.text)
        prepared = purpose.prepare(call.tenant_id, call.agent_id, read)
        with tenant_transaction(call.tenant_id):
            record_truncation(call, reply=reply)
            stored = bool(
                change(_COMPLETE, call=call.call_id, attempt=call.attempt, reply=pack(storable(reply.text)))
            )
            if stored:
                notes = purpose.apply(call.agent_id, call.subject, prepared, call.model)
                if notes:
                    change(_ADD_NOTES, call=call.call_id, notes=Jsonb([storable(note) for note in notes]))
            # The cost is charged even if the reply is too late to count. Last, as in heartbeats: the agent's schedule is
            # locked before its daily usage.
            charge_reply(call, reply=reply)
    except (OperationalError, InterfaceError):
        # The call is recovered when its lease expires.
        raise
    except Exception as error:
        # An unexpected error counts as a failed try: it must not repeat forever, nor block other calls.
        if not isinstance(error, ReplyInvalid):
            log.exception("maintenance_call_crashed", call_id=str(call.call_id), purpose=call.request.purpose)
        with tenant_transaction(call.tenant_id):
            record_truncation(call, reply=reply)
            counted = record_failed_try(call, error=error, reply=reply.text)
            charge_reply(call, reply=reply, error_kind=type(error).__name__)
            return counted
    if not stored:
        log.warning("call_lease_lost", call_id=str(call.call_id))
    return stored


def record_failed_try(call: LeasedCall, *, error: Exception, reply: str = "") -> bool:
    """Record a failed try in the open transaction: schedule a retry, or mark the call as failed.

    The retry of an unreadable reply includes the error. Returns False if this worker's lease was lost.
    """
    retry = _next_try(call, error, reply)
    purpose = PURPOSES[call.request.purpose]
    values: dict[str, Any] = {
        "call": call.call_id,
        "attempt": call.attempt,
        "reply": pack(storable(reply)),
        "error": storable(str(error)),
        "kind": type(error).__name__.lstrip("_"),
    }
    stored = _schedule_retry(call, retry, values) if retry is not None else bool(change(_GIVE_UP, **values))
    if stored:
        reason = storable(f"{values['kind']}: {error}")
        purpose.failed(call.agent_id, call.subject, reason)
        if retry is None:
            purpose.given_up(call.agent_id, call.subject, reason)
            log.warning(
                "maintenance_call_failed",
                call_id=str(call.call_id),
                purpose=call.request.purpose,
                error=str(error),
            )
    return stored


@dataclass(frozen=True, kw_only=True)
class _Retry:
    """The next try of a maintenance call: its delay, model and request."""

    delay: timedelta
    request: ModelRequest
    model: str
    subject: dict[str, Any]


def _schedule_retry(call: LeasedCall, retry: _Retry, values: Mapping[str, Any]) -> bool:
    """Write the next try; enqueue it at once if the process that waited for the answer was lost."""
    rows = fetch(
        _SCHEDULE_RETRY,
        **values,
        delay=retry.delay,
        lease=retry.delay or settings.ARBOR_QUEUE_LEASE,
        request=pack(retry.request.to_json()),
        model=retry.model,
        subject=Jsonb(retry.subject),
    )
    if rows and retry.subject.get("told"):
        enqueue(execution_message(call_id=call.call_id, tenant_id=call.tenant_id, agent_name=rows[0][0]))
    return bool(rows)


def _next_try(call: LeasedCall, error: Exception, reply: str) -> _Retry | None:
    """Return the try that follows a failed one; None if the call has failed for good."""
    if not PURPOSES[call.request.purpose].retried:
        return None
    request, model, subject = call.request, call.model, call.subject
    if isinstance(error, ReplyInvalid):
        request = retry_request(request, reply=storable(reply), fault=str(error))
    if not PURPOSES[request.purpose].waited_for:
        if call.failures >= len(RETRY_DELAYS):
            return None
        return _Retry(delay=RETRY_DELAYS[call.failures], request=request, model=model, subject=subject)
    if isinstance(error, ReplyInvalid) and (asked := subject.get("asked_again", 0)) < MAX_IMMEDIATE_RETRIES:
        subject = {**subject, "asked_again": asked + 1}
    elif isinstance(error, ModelUnavailable | ModelTimeout) and subject.get("models_left"):
        model, *models_left = subject["models_left"]
        subject = {**subject, "models_left": models_left}
    else:
        return None
    return _Retry(delay=timedelta(), request=request, model=model, subject=subject)
