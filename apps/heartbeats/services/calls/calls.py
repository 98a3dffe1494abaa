"""Execute external calls: lease them, call the models outside any transaction, store the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from queue import Empty, SimpleQueue
from uuid import UUID

import structlog
from django.conf import settings

from apps import web
from apps.calls.services.leased_calls import LeasedCall
from apps.calls.services.ledger import charge_failure
from apps.contacts.services.partial_replies import ReplyPublisher
from apps.heartbeats.services.calls.call_leases import lease_calls, renew_lease
from apps.heartbeats.services.calls.call_results import CallResult, store_results
from apps.maintenance.services.settlement import record_failed_try, settle_maintenance_call
from apps.providers import model_for, slots_for, tenant_model, tenant_slots
from apps.tenants.scope import release_connection, tenant_transaction
from apps.tools.services.calls import call_tool
from arbor.errors import ModelError, ToolFailed, WebFailed
from arbor.models.ports import CallPurpose, ModelReply, ModelRequest
from arbor.models.usage import Usage
from arbor.tools.calls import ToolRequest, answer_text
from arbor.web.lookup import look_up
from arbor.web.plan import WEB_HANDLE, Depth, plan_inquiry

log = structlog.get_logger(__name__)

#: Seconds for which a result of a batch waits for others, to be stored together with them.
GATHERED_FOR_S = 0.05

#: Seconds after which a call that waits for its provider renews its lease.
LEASE_RENEWAL_S = 15.0

#: Runs a function in a thread of its own.
type Submit = Callable[[Callable[[], None]], object]


def execute_call(*, call_id: UUID, tenant_id: UUID) -> bool:
    """Call the model, store its reply or error, and resume the heartbeat or apply the maintenance call.

    Returns False if the call is leased by another worker, done or not due, or its lease was lost in the meantime.
    """
    calls = lease_calls([call_id], tenant_id=tenant_id)
    outcome = _execute(calls[0]) if calls else False
    if isinstance(outcome, CallResult):
        return bool(store_results([outcome], tenant_id=tenant_id))
    return outcome


def execute_calls(*, call_ids: Sequence[UUID], tenant_id: UUID, submit: Submit) -> int:
    """Execute several calls of a tenant at once, each in its own thread; return the number of stored results.

    Results that arrive at about the same time are stored together. An error of one call does not affect others; the last
    error is raised when all are done.
    """
    calls = lease_calls(call_ids, tenant_id=tenant_id)
    done: SimpleQueue[_Outcome] = SimpleQueue()
    for call in calls:
        work = partial(_report, call, done)
        try:
            submit(work)
        except RuntimeError:
            # The worker shuts down: its thread pool accepts no new work.
            work()
    stored = 0
    last_error: BaseException | None = None
    for outcomes in _group_outcomes(done, len(calls)):
        stored += sum(outcome is True for outcome in outcomes)
        errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        results = [outcome for outcome in outcomes if isinstance(outcome, CallResult)]
        try:
            stored += len(store_results(results, tenant_id=tenant_id)) if results else 0
        except Exception as error:
            # Raised again when all calls are done: the threads still report to this queue.
            log.exception("results_store_failed", tenant_id=str(tenant_id))
            errors.append(error)
        release_connection()
        last_error = errors[-1] if errors else last_error
    if last_error is not None:
        raise last_error
    return stored


#: The outcome of a call: a result to store, whether a maintenance call was settled, or an error.
type _Outcome = CallResult | bool | BaseException


def _report(call: LeasedCall, done: SimpleQueue[_Outcome]) -> None:
    """Execute a call without storing its result, and report its outcome, also an error."""
    try:
        done.put(renew_lease(call) and _execute(call))
    except BaseException as fault:
        # The caller waits for an outcome of each thread, and raises this one when all are done.
        log.exception("call_execution_failed", call_id=str(call.call_id))
        done.put(fault)


def _group_outcomes(done: SimpleQueue[_Outcome], expected: int) -> Iterator[list[_Outcome]]:
    """Yield the outcomes that threads report, grouped by time."""
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


def _execute(call: LeasedCall) -> CallResult | bool:
    """Wait for a slot of the provider, if it has slots, and execute the call; return False if the lease was lost meanwhile."""
    slots = slots_for(call.model) if call.provider is None else tenant_slots(call.provider)
    if slots is None or call.request.purpose in (CallPurpose.WEB, CallPurpose.TOOL):
        return _ask_and_settle(call)
    # A person waits for the answer in a conversation.
    is_chat = call.request.purpose is CallPurpose.CHAT
    # The lease is renewed while the call waits, so that its heartbeat does not fail.
    with slots.slot(may_wait=partial(renew_lease, call), every_s=LEASE_RENEWAL_S, urgent=is_chat) as may_send:
        return may_send and _ask_and_settle(call)


def _ask_and_settle(call: LeasedCall) -> CallResult | bool:
    """Send the call; return the result of a heartbeat's call, or settle a maintenance call and return whether it counted."""
    started = time.perf_counter()
    try:
        reply = _ask(call)
    except Exception as error:
        # An unknown error fails the heartbeat at once too: otherwise its agent would be blocked until the lease expires.
        if not isinstance(error, (ModelError, ToolFailed, WebFailed)):
            log.exception("model_adapter_failed", model=call.model)
        return _record_failure(call, error, (time.perf_counter() - started) * 1000)
    return settle_maintenance_call(call, reply=reply) if call.subject else CallResult(call=call, reply=reply)


def _ask(call: LeasedCall) -> ModelReply:
    if call.request.purpose is CallPurpose.WEB:
        return _ask_web(call.request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S)
    if call.request.purpose is CallPurpose.TOOL:
        return _ask_tool(call)
    # A person waits for the answer of a conversation, and reads the reply while it is written.
    publisher = ReplyPublisher(call) if call.request.purpose is CallPurpose.CHAT else None
    model = model_for(call.model) if call.provider is None else tenant_model(call.model, call.provider)
    return model.complete(call.request, deadline_s=settings.ARBOR_MODEL_DEADLINE_S, on_text=publisher)


def _ask_web(request: ModelRequest, *, deadline_s: float) -> ModelReply:
    """Search the web and read pages; return the findings as JSON, as the text of a reply.

    Raises WebFailed when nothing was found or readable, ConfigurationInvalid without a configured web.
    """
    context = request.context
    plan = plan_inquiry(context["question"], context["queries"], Depth(context["depth"]))
    started = time.monotonic()
    findings = look_up(
        plan,
        search=web.search(),
        fetch=web.fetch(),
        deadline_s=min(settings.ARBOR_WEB_DEADLINE_S, deadline_s),
    )
    return _free_reply(json.dumps(findings.to_json(), ensure_ascii=False), handle=WEB_HANDLE, started=started)


def _ask_tool(call: LeasedCall) -> ModelReply:
    """Call a tool of an MCP server; return its answer as JSON, as the text of a reply. Raises ToolFailed."""
    started = time.monotonic()
    answer = call_tool(
        ToolRequest.of(call.request),
        tenant_id=call.tenant_id,
        agent_id=call.agent_id,
        deadline_s=min(settings.ARBOR_MCP_DEADLINE_S, settings.ARBOR_MODEL_DEADLINE_S),
    )
    return _free_reply(answer_text(answer), handle=call.model, started=started)


def _free_reply(text: str, *, handle: str, started: float) -> ModelReply:
    """Return the reply to a call that asked no model; `started` is by the monotonic clock."""
    provider, _, name = handle.partition("/")
    return ModelReply(
        text=text,
        provider=provider,
        model=name,
        usage=Usage(),
        cost_usd=Decimal(0),
        latency_ms=(time.monotonic() - started) * 1000,
    )


def _record_failure(call: LeasedCall, error: Exception, latency_ms: float) -> CallResult | bool:
    if not call.subject:
        return CallResult(call=call, error=error, latency_ms=latency_ms)
    with tenant_transaction(call.tenant_id):
        counted = record_failed_try(call, error=error)
        # Last: the agent's schedule is locked before its daily usage.
        charge_failure(call, error=error, latency_ms=latency_ms)
        return counted
