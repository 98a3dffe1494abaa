"""External calls: a worker of the model queue leases them, asks the models with no transaction open, stores what came."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections

from apps.heartbeats.services.call_leases import LeasedCall, lease_calls, renew_lease
from apps.heartbeats.services.call_results import CallResult, store_results
from apps.heartbeats.services.errands import record_failed_try, settle_maintenance_call
from apps.heartbeats.services.ledger import charge_failure
from apps.heartbeats.services.web_calls import ask_the_web
from apps.providers import model_for
from apps.tenants.scope import APP, tenant_transaction
from arbor.errors import ModelError, WebFailed
from arbor.models.ports import CallPurpose, ModelReply

log = structlog.get_logger(__name__)

#: The result of one of several calls waits for others so long before they are stored.
GATHERED_FOR_S = 0.05

#: Runs a function in a thread of its own.
type Submit = Callable[[Callable[[], None]], object]


def fulfil_call(*, call_id: UUID, tenant_id: UUID) -> bool:
    """Ask the model and store its reply or its failure, then let the heartbeat go on, or do what the errand was for.

    Returns False when the call is another worker's, done, or not due yet, and when its lease was lost meanwhile.
    """
    calls = _leased([call_id], tenant_id)
    return bool(calls and _fulfil(calls[0]))


def execute_calls(*, call_ids: Sequence[UUID], tenant_id: UUID, submit: Submit) -> int:
    """Fulfil several calls of a tenant at once, each asked in a thread of its own; return how many results were stored.

    Results that come at about the same time are stored together. A fault of one call is its own; the last fault is raised
    when all are done.
    """
    calls = _leased(call_ids, tenant_id)
    done: SimpleQueue[_Outcome] = SimpleQueue()
    for call in calls:
        work = partial(_report, call, done)
        try:
            submit(work)
        except RuntimeError:
            # The worker shuts down: its threads take nothing new.
            work()
    stored = 0
    fault: BaseException | None = None
    for outcomes in _groups(done, len(calls)):
        stored += sum(outcome is True for outcome in outcomes)
        faults = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        results = [outcome for outcome in outcomes if isinstance(outcome, CallResult)]
        try:
            stored += len(store_results(results, tenant_id=tenant_id)) if results else 0
        except Exception as error:
            log.exception("results_not_stored", tenant_id=str(tenant_id))
            faults.append(error)
        _release_connection()
        fault = faults[-1] if faults else fault
    if fault is not None:
        raise fault
    return stored


#: What a thread reports of its call: a result to be stored, whether an errand was settled, or a fault.
type _Outcome = CallResult | bool | BaseException


def _leased(call_ids: Sequence[UUID], tenant_id: UUID) -> list[LeasedCall]:
    calls = lease_calls(call_ids, tenant_id=tenant_id)
    _release_connection()
    missing = set(call_ids) - {call.call_id for call in calls}
    for call_id in missing:
        log.info("call_not_pending", call_id=str(call_id))
    return calls


def _fulfil(call: LeasedCall) -> bool:
    outcome = _outcome(call)
    if isinstance(outcome, CallResult):
        return bool(store_results([outcome], tenant_id=call.tenant_id))
    return outcome


def _report(call: LeasedCall, done: SimpleQueue[_Outcome]) -> None:
    """Fulfil a call in a thread of its own but for storing its result, and report what came of it, whatever it is."""
    try:
        if renew_lease(call):
            _release_connection()
            done.put(_outcome(call))
        else:
            log.warning("call_lease_lost", call_id=str(call.call_id))
            done.put(False)
    except BaseException as fault:
        log.exception("fault_in_batch", call_id=str(call.call_id))
        done.put(fault)


def _groups(done: SimpleQueue[_Outcome], expected: int) -> Iterator[list[_Outcome]]:
    """Yield what the threads report, together what comes within a moment."""
    while expected:
        group = [done.get()]
        until = time.monotonic() + GATHERED_FOR_S
        while len(group) < expected:
            try:
                group.append(done.get(timeout=max(0.0, until - time.monotonic())))
            except Empty:
                break
        expected -= len(group)
        yield group


def _outcome(call: LeasedCall) -> CallResult | bool:
    """Ask the model; return the result of a heartbeat's call, and of an errand, which is settled, whether it counts."""
    started = time.perf_counter()
    try:
        reply = _ask(call)
    except (ModelError, WebFailed) as error:
        return _failed(call, error, (time.perf_counter() - started) * 1000)
    except Exception as error:
        # A fault in an adapter must end this heartbeat as failed, at once, and not hold its agent for a lease.
        log.exception("model_adapter_fault", model=call.model)
        return _failed(call, error, (time.perf_counter() - started) * 1000)
    return settle_maintenance_call(call, reply) if call.subject else CallResult(call=call, reply=reply)


def _ask(call: LeasedCall) -> ModelReply:
    if call.request.purpose is CallPurpose.WEB:
        return ask_the_web(call.request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S)
    return model_for(call.model).complete(call.request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S)


def _failed(call: LeasedCall, error: Exception, latency_ms: float) -> CallResult | bool:
    if not call.subject:
        return CallResult(call=call, error=error, latency_ms=latency_ms)
    with tenant_transaction(call.tenant_id):
        charge_failure(call, error, latency_ms)
        return record_failed_try(call, error)


def _release_connection() -> None:
    """Give a pooled connection back: hundreds of calls wait on a few connections."""
    if settings.ARBOR_DB_POOL_SIZE:
        connections[APP].close()
