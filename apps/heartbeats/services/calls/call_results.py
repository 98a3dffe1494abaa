"""Persist the results of calls, and resume their heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from apps.calls.models import CallStatus
from apps.calls.services.leased_calls import LeasedCall
from apps.calls.services.ledger import (
    CHARGE,
    Charge,
    charges_json,
    failure_charge,
    record_truncation,
    reply_charge,
)
from apps.heartbeats.services.schedule import advance_message
from apps.queues import enqueue
from apps.tenants.encoding import to_json
from apps.tenants.packing import in_json, pack
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.models.json_text import storable
from arbor.models.ports import ModelReply

log = structlog.get_logger(__name__)

# A reply counts only under the lease of its request; its cost is charged in any case. Calls are also named by an array of
# ids, and heartbeats looked up by a LIMIT: the planner expects a hundred rows of JSON, and would read all of the tenant's.
_END = f"""
WITH result AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(results)s::json) AS result (call uuid, attempt int, status text, reply bytea, error text,
        error_kind text)
), locked AS MATERIALIZED (
    SELECT c.id FROM calls_externalcall c JOIN result ON result.call = c.id AND result.attempt = c.attempts
    WHERE c.tenant_id = %(tenant)s AND c.id = ANY(%(calls)s::uuid[]) AND c.status = 'running'
    ORDER BY c.id FOR UPDATE OF c
), ended AS (
    UPDATE calls_externalcall c SET status = result.status, reply = result.reply, error = result.error,
        error_kind = result.error_kind, ended_at = now(), lease_until = NULL
    FROM locked JOIN result ON result.call = locked.id
    WHERE c.tenant_id = %(tenant)s AND c.id = locked.id AND c.id = ANY(%(calls)s::uuid[])
    RETURNING c.id, c.agent_id, c.heartbeat_id
), {CHARGE}
SELECT ended.id, h.epoch, (SELECT name FROM agents_agent WHERE tenant_id = %(tenant)s AND id = ended.agent_id) FROM ended
CROSS JOIN LATERAL (
    SELECT epoch FROM heartbeats_heartbeat WHERE tenant_id = %(tenant)s AND id = ended.heartbeat_id LIMIT 1
) h
"""  # noqa: S608 (no external input)


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """The result of a heartbeat's call: a reply, or an error and its latency."""

    call: LeasedCall
    reply: ModelReply | None = None
    error: Exception | None = None
    latency_ms: float = 0.0


def store_results(results: Sequence[CallResult], *, tenant_id: UUID) -> set[UUID]:
    """Store results and their cost, and resume the heartbeats; return the calls whose results counted.

    If storing a batch fails, its results are stored one by one; the last error is raised when all are done.
    """
    try:
        return _store(results, tenant_id)
    except Exception:
        if len(results) == 1:
            raise
        # One bad result must not prevent the others from being stored, so each is stored in a transaction of its own.
        log.exception("result_batch_failed", calls=[str(result.call.call_id) for result in results])
    stored: set[UUID] = set()
    last_error: Exception | None = None
    for result in results:
        try:
            stored |= _store([result], tenant_id)
        except Exception as error:
            # Raised again below, after the results that can be stored.
            log.exception("result_store_failed", call_id=str(result.call.call_id))
            last_error = error
    if last_error is not None:
        raise last_error
    return stored


def _store(results: Sequence[CallResult], tenant_id: UUID) -> set[UUID]:
    """Store results in one transaction: one statement, and one for each truncated reply."""
    charges = [charge for result in results if (charge := _charge_of(result)) is not None]
    with tenant_transaction(tenant_id, generic_plans=True):
        rows = fetch(
            _END,
            results=to_json([_row(result) for result in results]),
            calls=[result.call.call_id for result in results],
            charges=charges_json(charges),
        )
        for result in results:
            if result.reply is not None:
                record_truncation(result.call, reply=result.reply)
        ended = {call_id: (epoch, name) for call_id, epoch, name in rows}
        messages = []
        for call in (result.call for result in results):
            if call.call_id not in ended:
                log.warning("call_lease_lost", call_id=str(call.call_id))
                continue
            epoch, name = ended[call.call_id]
            messages.append(
                advance_message(agent_id=call.agent_id, tenant_id=tenant_id, epoch=epoch, name=name)
            )
        enqueue(*messages)
    return set(ended)


def _charge_of(result: CallResult) -> Charge | None:
    if result.reply is not None:
        return reply_charge(result.call, result.reply)
    assert result.error is not None
    return failure_charge(result.call, result.error, result.latency_ms)


def _row(result: CallResult) -> dict[str, object]:
    """Return a result as a JSON row of _END."""
    failed = result.reply is None
    return {
        "call": result.call.call_id,
        "attempt": result.call.attempt,
        "status": (CallStatus.FAILED if failed else CallStatus.COMPLETE).value,
        "reply": in_json(pack("" if result.reply is None else storable(result.reply.text))),
        "error": storable(str(result.error)) if failed else "",
        "error_kind": type(result.error).__name__ if failed else "",
    }
