"""Persist the progress of heartbeats under their leases: heartbeats, calls, usage, schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from django.conf import settings

from apps.calls.services.leased_calls import execution_message
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.heartbeats.services.calls.questions import packed_question
from apps.heartbeats.services.legs.members import LeasedHeartbeat
from apps.heartbeats.services.legs.signals import end_signal, end_signals, signal_values, step_signal
from apps.heartbeats.services.reports.trace import step_json
from apps.queues import enqueue
from apps.signals.services.emission import INSERT_BATCHES
from apps.tenants.encoding import to_json
from apps.tenants.packing import pack, pack_text, sql_literal
from apps.tenants.statements import fetch
from arbor.errors import StaleLease
from arbor.heartbeat.checkpoint import checkpoint_json
from arbor.heartbeat.needs import Question
from arbor.heartbeat.results import RoundTripRecord
from arbor.heartbeat.state import HeartbeatState
from arbor.ids import uuid7
from arbor.signals import Signal

log = structlog.get_logger(__name__)

#: Added to the reason of a heartbeat that failed after its actions.
ACTIONS_COMMITTED = "its earlier actions remain"

_COLUMNS = """id uuid, agent_id uuid, slot_at timestamptz, trigger text, epoch bigint, status text, step int, number bigint,
    mode text, energy_start float8, energy_end float8, energy_unit text, reasoning text, dropped jsonb, repairs jsonb, narrative text, emotional_valence float8, arousal float8, tier text, round_trips int2,
    memory_id uuid, reason text, model text, own_ms float8, elapsed_ms float8, started_at timestamptz,
    ended_at timestamptz, known bool"""
_NAMES = ", ".join(column.split()[0] for column in _COLUMNS.split(","))
#: Columns written only when the row of a heartbeat is inserted.
_IDENTITY = frozenset({"id", "agent_id", "slot_at", "trigger", "epoch", "started_at", "known"})
_CHANGED = [name for name in _NAMES.split(", ") if name not in _IDENTITY]
#: Packed columns, whose parameters are arrays of bytes.
_PACKED = ("checkpoint", "situation", "trace", "actions", "goal_changes")
_INSERTED = ", ".join([*(name for name in _NAMES.split(", ") if name != "known"), *_PACKED])
# Texts and numbers go as JSON, packed columns as arrays of bytes. The rows to update are also named by arrays of ids:
# for JSON alone the planner expects a hundred rows, and scans the table.
_ROWS = f"""
heartbeats AS MATERIALIZED (
    SELECT * FROM ROWS FROM (
        json_to_recordset(%(rows)s::json) AS ({_COLUMNS}),
        {", ".join(f"unnest(%({name})s::bytea[])" for name in _PACKED)}
    ) AS r ({_NAMES}, {", ".join(_PACKED)})
), inserted AS (
    INSERT INTO heartbeats_heartbeat (tenant_id, {_INSERTED})
    SELECT %(tenant)s, {_INSERTED} FROM heartbeats WHERE NOT known RETURNING id
), updated AS (
    UPDATE heartbeats_heartbeat h SET {", ".join(f"{name} = r.{name}" for name in _CHANGED)},
        checkpoint = r.checkpoint, situation = coalesce(r.situation, h.situation), trace = h.trace || r.trace,
        actions = r.actions, goal_changes = r.goal_changes
    FROM heartbeats r
    WHERE r.known AND h.tenant_id = %(tenant)s AND h.id = r.id AND h.id = ANY(%(ids)s::uuid[]) AND h.epoch = r.epoch AND h.step = r.step - 1
        AND h.status IN ('running', 'waiting')
    RETURNING h.id
), signaled AS ({INSERT_BATCHES})
"""  # noqa: S608 (no external input)
_SUSPEND = f"""
WITH {_ROWS}, asked AS (
    INSERT INTO calls_externalcall (tenant_id, id, agent_id, heartbeat_id, purpose, status, model, request, sections,
        reply, error, error_kind, attempts, requested_at)
    SELECT %(tenant)s, c.id, c.agent_id, c.heartbeat_id, c.purpose, 'pending', c.model, c.request, c.sections,
        {sql_literal("")}, '', '', 0, now()
    FROM ROWS FROM (
        json_to_recordset(%(calls)s::json) AS (id uuid, agent_id uuid, heartbeat_id uuid, purpose text, model text),
        unnest(%(requests)s::bytea[]), unnest(%(sections)s::bytea[])
    ) AS c (id, agent_id, heartbeat_id, purpose, model, request, sections)
), waiting AS (
    UPDATE heartbeats_heartbeatschedule s SET state = 'running', lease_until = now() + %(lease)s
    WHERE s.tenant_id = %(tenant)s AND s.agent_id = ANY(%(agents)s::uuid[]) RETURNING s.agent_id
)
SELECT (SELECT count(*) FROM inserted) + (SELECT count(*) FROM updated), (SELECT count(*) FROM waiting)
"""  # noqa: S608
# Counts the heartbeats, as `apps.calls.services.ledger` counts the calls, and releases the schedules: due at the planned time, or at
# an earlier one that was set meanwhile; off if the agent is no longer active.
_FINISH = f"""
WITH {_ROWS}, counted AS (
    INSERT INTO calls_dailyusage (tenant_id, id, agent_id, day, heartbeats)
    SELECT %(tenant)s, id, agent_id, (now() AT TIME ZONE 'UTC')::date, 1
    FROM unnest(%(usage)s::uuid[], %(ran)s::uuid[]) AS ran (id, agent_id) ORDER BY agent_id
    ON CONFLICT (tenant_id, agent_id, day) DO UPDATE SET heartbeats = calls_dailyusage.heartbeats + 1
), released AS (
    UPDATE heartbeats_heartbeatschedule s SET attempts = 0, lease_until = NULL, slot_at = NULL, last_error = f.error,
        state = CASE WHEN a.status = 'active' THEN 'idle' ELSE 'off' END,
        next_due_at = CASE WHEN s.next_trigger = 'timer' AND s.next_due_at > now()
            THEN coalesce(f.due, s.next_due_at) ELSE s.next_due_at END,
        next_trigger = CASE WHEN s.next_trigger = 'timer' AND s.next_due_at > now() AND f.due IS NOT NULL
            THEN f.trigger ELSE s.next_trigger END
    FROM json_to_recordset(%(following)s::json) AS f (agent_id uuid, error text, due timestamptz, trigger text)
    JOIN agents_agent a ON a.tenant_id = %(tenant)s AND a.id = f.agent_id AND a.id = ANY(%(agents)s::uuid[])
    WHERE s.tenant_id = %(tenant)s AND s.agent_id = f.agent_id AND s.agent_id = ANY(%(agents)s::uuid[])
    RETURNING s.agent_id
)
SELECT (SELECT count(*) FROM inserted) + (SELECT count(*) FROM updated), (SELECT count(*) FROM released)
"""  # noqa: S608

_NOTHING = pack({})
_NO_ROWS: dict[str, Any] = {"rows": "[]", "ids": [], **{name: [] for name in _PACKED}}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ending:
    """The status to store for a heartbeat at the end of a leg."""

    member: LeasedHeartbeat
    status: HeartbeatStatus
    #: None for a heartbeat that was not loaded.
    heartbeat: HeartbeatState | None
    reason: str = ""


def suspend(members: Sequence[LeasedHeartbeat], *, signals: list[Signal]) -> None:
    """Store heartbeats as waiting, with their calls and pending signals, and enqueue the calls. One statement for all.

    Raises StaleLease when another worker has one of the leases.
    """
    if not members:
        return
    signaled = signal_values(members, signals, last=[step_signal(member) for member in members])
    calls, requests, sections, messages = [], [], [], []
    for member in members:
        suspension = member.progress.suspension
        assert suspension is not None
        question: Question = suspension.payload
        call_id = uuid7()
        calls.append(
            {
                "id": call_id,
                "agent_id": member.agent.id,
                "heartbeat_id": member.heartbeat_id,
                "purpose": suspension.kind,
                "model": question.model,
            }
        )
        request, parts = packed_question(question)
        requests.append(request)
        sections.append(parts)
        messages.append(
            execution_message(call_id=call_id, tenant_id=member.agent.tenant_id, agent_name=member.agent.name)
        )
    rows = _rows([_ending(member) for member in members])
    values = {
        "agents": [member.agent.id for member in members],
        "calls": to_json(calls),
        "requests": requests,
        "sections": sections,
        "lease": waiting_lease(),
        **signaled,
    }
    _check(fetch(_SUSPEND, **rows, **values), written=len(members), scheduled=len(members))
    enqueue(*messages)


def finish(members: Sequence[LeasedHeartbeat], *, signals: list[Signal], with_ends: bool) -> None:
    """End heartbeats with their pending signals, and release their schedules. One statement for all.

    `with_ends`: with the signals of their ends too. Raises StaleLease when another worker has one of the leases.
    """
    if not members:
        return
    endings = [_ending(member) for member in members]
    signaled = signal_values(
        members,
        signals,
        last=end_signals(members) if with_ends else [],
        without_start={member.agent.id for member in members if member.ended_as == HeartbeatStatus.SKIPPED},
    )
    _release(endings, signaled, rows=_rows(endings), written=len(endings))


def end_unloaded(member: LeasedHeartbeat, *, reason: str) -> None:
    """End as failed a heartbeat whose state is not loaded; its stored record stays as it is. Raises StaleLease."""
    why = f"{reason} ({ACTIONS_COMMITTED})" if member.acted else reason
    now = datetime.now(UTC)
    values: dict[str, Any] = {
        "status": HeartbeatStatus.FAILED,
        "checkpoint": {},
        "reason": why,
        "own_ms": member.own_ms,
        "elapsed_ms": member.elapsed_ms,
        "ended_at": now,
    }
    if member.step is None:
        Heartbeat.objects.create(
            id=member.heartbeat_id,
            tenant_id=member.agent.tenant_id,
            agent_id=member.agent.id,
            slot_at=member.slot_at,
            trigger=member.trigger,
            epoch=member.epoch,
            started_at=now,
            **values,
        )
    else:
        heartbeat = Heartbeat.objects.filter(id=member.heartbeat_id, step=member.step)
        if not heartbeat.update(step=member.step + 1, epoch=member.epoch, **values):
            raise StaleLease
    ending = _Ending(member=member, status=HeartbeatStatus.FAILED, heartbeat=None, reason=why)
    signaled = signal_values([member], [], last=[end_signal(member, HeartbeatStatus.FAILED, None)])
    _release([ending], signaled, rows=_NO_ROWS, written=0)


def _release(
    endings: Sequence[_Ending], signaled: dict[str, Any], *, rows: dict[str, Any], written: int
) -> None:
    """Write the rows of ended heartbeats, count them in daily usage, release their schedules, and log them."""
    agents = [ending.member.agent.id for ending in endings]
    ran = [ending.member.agent.id for ending in endings if ending.status is not HeartbeatStatus.SKIPPED]
    following = [
        {
            "agent_id": ending.member.agent.id,
            "error": ending.reason if ending.status is HeartbeatStatus.FAILED else "",
            "due": after.due_at if after else None,
            "trigger": after.trigger if after else "timer",
        }
        for ending in endings
        for after in [ending.heartbeat.next if ending.heartbeat else None]
    ]
    values = {
        "agents": agents,
        "usage": [uuid7() for _ in ran],
        "ran": ran,
        "following": to_json(following),
        **signaled,
    }
    _check(fetch(_FINISH, **rows, **values), written=written, scheduled=len(agents))
    for ending in endings:
        member = ending.member
        log.info(
            "heartbeat_ended",
            agent=member.agent.name,
            status=str(ending.status),
            heartbeat_id=str(member.heartbeat_id),
            mode=ending.heartbeat.mode if ending.heartbeat else "",
            own_ms=round(member.own_ms, 1),
            **({"reason": ending.reason} if ending.reason else {}),
        )


def _ending(member: LeasedHeartbeat) -> _Ending:
    heartbeat, status, reason = member.heartbeat, member.ended_as or HeartbeatStatus.WAITING, ""
    if status == HeartbeatStatus.SKIPPED:
        reason = heartbeat.idle
    elif status == HeartbeatStatus.FAILED:
        why = member.progress.fault or heartbeat.failure
        reason = f"{why} ({ACTIONS_COMMITTED})" if heartbeat.has_acted else why
    return _Ending(member=member, status=status, heartbeat=heartbeat, reason=reason)


def _check(counts: Sequence[tuple[Any, ...]], *, written: int, scheduled: int) -> None:
    if counts != [(written, scheduled)]:
        raise StaleLease


def _rows(endings: Sequence[_Ending]) -> dict[str, Any]:
    """Return the parameters of _ROWS; advance the heartbeats' step numbers, and clear the steps that the rows contain."""
    rows: list[dict[str, Any]] = []
    packed: dict[str, list[bytes | None]] = {name: [] for name in _PACKED}
    now = datetime.now(UTC)
    for ending in endings:
        member = ending.member
        over = ending.status is not HeartbeatStatus.WAITING
        heartbeat, step = member.heartbeat, 0 if member.step is None else member.step + 1
        whole = heartbeat.whole
        rows.append(
            {
                "id": member.heartbeat_id,
                "agent_id": member.agent.id,
                "slot_at": member.slot_at,
                "trigger": member.trigger,
                "epoch": member.epoch,
                "known": member.step is not None,
                "status": ending.status.value,
                "step": step,
                "reason": ending.reason,
                "own_ms": member.own_ms,
                "elapsed_ms": member.elapsed_ms,
                "started_at": member.steps[0].started_at if member.steps else now,
                "ended_at": now if over else None,
                **_record(heartbeat, whole),
            }
        )
        columns = {
            "checkpoint": _NOTHING if over else pack_text(checkpoint_json(member.progress.checkpoint)),
            # The situation of a skipped heartbeat is not stored.
            "situation": _NOTHING if heartbeat.idle else _situation(member, heartbeat),
            "trace": pack([step_json(step) for step in member.steps]),
            "actions": pack([record.to_json() for record in whole.action_records]),
            "goal_changes": pack([change.model_dump(mode="json") for change in whole.goal_changes]),
        }
        for name, column in columns.items():
            packed[name].append(column)
        member.steps.clear()
        member.step = step
    return {
        "rows": to_json(rows),
        "ids": [ending.member.heartbeat_id for ending in endings],
        **packed,
    }


def _record(heartbeat: HeartbeatState, whole: RoundTripRecord) -> dict[str, Any]:
    """Return the columns of the heartbeat's record that are not packed."""
    return {
        "number": 0 if heartbeat.idle else heartbeat.situation.heartbeat_number,
        "mode": heartbeat.mode,
        "energy_start": None if heartbeat.idle else heartbeat.energy_start,
        "energy_end": heartbeat.energy_end,
        "energy_unit": heartbeat.situation.energy_unit,
        "reasoning": whole.reasoning,
        "dropped": [item.model_dump() for item in whole.dropped],
        "repairs": whole.repairs,
        "narrative": heartbeat.narrative,
        "emotional_valence": heartbeat.emotional_valence,
        "arousal": heartbeat.arousal,
        "tier": heartbeat.tier,
        "round_trips": heartbeat.round_trips,
        "memory_id": heartbeat.memory_id,
        "model": "" if heartbeat.idle else heartbeat.model,
    }


def _situation(member: LeasedHeartbeat, heartbeat: HeartbeatState) -> bytes | None:
    """Return the packed situation, from now on the stored one; None where the row has it already."""
    if heartbeat.situation is member.stored_situation:
        return None
    member.stored_situation = heartbeat.situation
    return pack_text(heartbeat.situation.model_dump_json().encode())


def waiting_lease() -> timedelta:
    """Return the lease of a heartbeat that waits for a model: the model's deadline and the wait for a worker."""
    lease: timedelta = timedelta(seconds=settings.ARBOR_MODEL_DEADLINE_S) + settings.ARBOR_QUEUE_LEASE
    return lease
