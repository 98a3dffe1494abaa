"""How far a heartbeat has come, written down: only by the worker that holds its lease."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import structlog
from django.conf import settings

from apps.heartbeats.handlers.standing import STANDS, has_acted, let_be_noticed, let_stand, whole_record
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.asked import stored_sections
from apps.heartbeats.services.schedule import fulfil_message
from apps.heartbeats.services.trace import step_json
from apps.heartbeats.services.values import Walk
from apps.queues import enqueue
from apps.tenants.packing import pack
from apps.tenants.statements import bound, change, fetch, insert_of, update_of
from arbor.errors import StaleLease
from arbor.ids import uuid7
from arbor.pipeline.engine import Suspension

log = structlog.get_logger(__name__)

_FENCE = """
SELECT epoch FROM heartbeats_heartbeatschedule
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND epoch = %(epoch)s AND state = 'running' FOR UPDATE
"""
# Not joined with the lock: a statement that has waited for a lock still sees the other rows as they were before.
_AT_STEP = """
SELECT id FROM heartbeats_heartbeat
WHERE tenant_id = %(tenant)s AND id = %(beat)s AND epoch = %(epoch)s AND step = %(step)s
    AND status IN ('running', 'waiting')
"""
_ASK = """
INSERT INTO heartbeats_externalcall (tenant_id, id, agent_id, heartbeat_id, purpose, status, model, request, sections,
    reply, error, error_kind, attempts, requested_at)
VALUES (%(tenant)s, %(call)s, %(agent)s, %(heartbeat_id)s, %(purpose)s, 'pending', %(model)s, %(request)s, %(sections)s,
    '', '', '', 0, now())
"""
_WAIT = """
UPDATE heartbeats_heartbeatschedule SET lease_until = now() + %(lease)s
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
"""
# Counts the beat, and lets the agent wait for its planned time, or for an earlier one that somebody brought about
# meanwhile; it rests if it may no longer beat.
_COUNT = """
INSERT INTO heartbeats_dailyusage (tenant_id, id, agent_id, day, beats)
SELECT %(tenant)s::uuid, %(usage)s::uuid, %(agent)s::uuid, (now() AT TIME ZONE 'UTC')::date, 1 WHERE %(ran)s::boolean
ON CONFLICT (tenant_id, agent_id, day) DO UPDATE SET beats = heartbeats_dailyusage.beats + 1
"""
_LET_GO = """
UPDATE heartbeats_heartbeatschedule s SET attempts = 0, lease_until = NULL, slot_at = NULL, last_error = %(error)s,
    state = CASE WHEN a.status = 'active' THEN 'idle' ELSE 'off' END,
    next_due_at = CASE WHEN s.next_trigger = 'timer' AND s.next_due_at > now()
        THEN coalesce(%(due)s::timestamptz, s.next_due_at) ELSE s.next_due_at END,
    next_trigger = CASE WHEN s.next_trigger = 'timer' AND s.next_due_at > now() AND %(due)s::timestamptz IS NOT NULL
        THEN %(trigger)s ELSE s.next_trigger END
FROM agents_agent a
WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent)s AND a.tenant_id = s.tenant_id AND a.id = s.agent_id
"""


def fence(walk: Walk) -> None:
    """Lock the lease and the heartbeat; raises StaleLease when another worker has either."""
    if not fetch(_FENCE, agent=walk.agent_id, epoch=walk.epoch):
        raise StaleLease
    if walk.step is not None and not fetch(
        _AT_STEP, beat=walk.heartbeat_id, epoch=walk.epoch, step=walk.step
    ):
        raise StaleLease


def suspend(walk: Walk, suspension: Suspension) -> None:
    """Store the heartbeat as waiting, and its call, in one statement; tell the workers that ask models."""
    written, beat = _written(walk, status=HeartbeatStatus.WAITING, checkpoint=stored_checkpoint(walk))
    call_id, payload = uuid7(), suspension.payload
    change(
        _suspending(written),
        **beat,
        call=call_id,
        agent=walk.agent_id,
        purpose=suspension.kind,
        model=payload["model"],
        request=pack(payload["request"]),
        sections=pack(stored_sections(payload["sections"], payload["request"])),
        lease=waiting_lease(),
    )
    enqueue(fulfil_message(call_id=call_id, tenant_id=walk.tenant_id, agent_name=walk.agent_name))


@cache
def _suspending(written: str) -> str:
    return f"WITH beat AS ({written}), call AS ({_ASK}) {_WAIT}"


def finish(walk: Walk, status: HeartbeatStatus, *, reason: str) -> None:
    """End the heartbeat and let its agent wait for the next one, or rest if it may no longer beat."""
    context = walk.checkpoint.context
    failure: Mapping[str, Any] = context.get("failure") or {}
    why, values = "", {}
    if status == HeartbeatStatus.SKIPPED:
        # It was nothing but a look: it has no number, no energy came back, and no model was asked.
        why = str(context.get("idle") or reason)
        values = {"number": 0, "energy_start": None, "model": ""}
    elif status != HeartbeatStatus.DONE:
        why = reason or str(failure.get("reason", ""))
        acted = has_acted(context)
        if acted:
            let_stand(context)
        else:
            let_be_noticed(context)
        if acted or walk.acted:
            why = f"{why} ({STANDS})"
    written, beat = _written(
        walk, status=status, checkpoint={}, ended_at=datetime.now(UTC), reason=why, **values
    )
    following: Mapping[str, Any] = context.get("next") or {}
    change(
        _finishing(written),
        **beat,
        agent=walk.agent_id,
        error=why if status == HeartbeatStatus.FAILED else "",
        usage=uuid7(),
        ran=status != HeartbeatStatus.SKIPPED,
        due=following.get("due_at"),
        trigger=following.get("trigger", "timer"),
    )
    log.info(
        "heartbeat",
        agent=walk.agent_name,
        status=str(status),
        heartbeat_id=str(walk.heartbeat_id),
        mode=walk.checkpoint.context.get("mode", ""),
        own_ms=round(walk.own_ms, 1),
        **({"reason": why} if why else {}),
    )


@cache
def _finishing(written: str) -> str:
    return f"WITH beat AS ({written}), used AS ({_COUNT}) {_LET_GO}"


def store(walk: Walk, **values: Any) -> None:
    """Write the heartbeat's row as it stands, with the steps taken since the last time."""
    written, beat = _written(walk, **values)
    change(written, **beat)


def _written(walk: Walk, **values: Any) -> tuple[str, dict[str, Any]]:
    """Return the statement that writes the heartbeat's row as it stands, and its values; the walk counts it as written."""
    context = walk.checkpoint.context
    # What is said here goes before what the nodes have put on record.
    values = {"own_ms": walk.own_ms, **whole_record(context), **values}
    if "mode" in context:
        values["mode"] = context["mode"]
    situation = values.get("situation") or context.get("situation")
    if situation is not None and situation is not walk.seen:
        # A column of its own: what was seen is not written again with each checkpoint, nor when the beat ends.
        values["situation"] = walk.seen = situation
        values["energy_unit"] = situation.energy_unit
    else:
        values.pop("situation", None)
    trace = [step_json(step) for step in walk.steps]
    started_at = walk.steps[0].started_at if walk.steps else datetime.now(UTC)
    walk.steps.clear()
    if walk.step is None:
        walk.step = 0
        values |= {
            "agent_id": walk.agent_id,
            "slot_at": walk.slot_at,
            "trigger": walk.trigger,
            "epoch": walk.epoch,
            "started_at": started_at,
        }
        statement = insert_of(Heartbeat, ("tenant_id", "id", *sorted(values), "trace"))
    else:
        walk.step += 1
        values["step"] = walk.step
        statement = update_of(Heartbeat, tuple(sorted(values)), ("trace",))
    identity = {"tenant_id": walk.tenant_id, "id": walk.heartbeat_id}
    return statement, bound(Heartbeat, {**values, **identity, "trace": trace})


def stored_checkpoint(walk: Walk) -> dict[str, Any]:
    """Return where the walk stands, as JSON can be made of it; what it saw is in a column of its own."""
    context = {name: value for name, value in walk.checkpoint.context.items() if name != "situation"}
    return replace(walk.checkpoint, context=context).to_json()


def waiting_lease() -> timedelta:
    """Return how long a heartbeat may wait for a model: its deadline, and the time its call waits for a worker."""
    lease: timedelta = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S) + settings.ARBOR_QUEUE_LEASE
    return lease
