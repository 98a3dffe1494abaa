"""Errands: calls to models that maintenance makes, without a heartbeat.

An errand is written with its subject, told to the workers of the model queue, and applied in the transaction that stores
its reply, so it happens once or not at all. The row is the truth: a lost message is sent again, a lost worker's try counts
as failed, and a try that failed is made again later and later until the errand is left as failed, with its reason.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError
from psycopg.types.json import Jsonb

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.heartbeats.models import CallStatus
from apps.heartbeats.services.ledger import Taken, charge_reply, note_truncated
from apps.heartbeats.services.purposes import PURPOSES, subject_key
from apps.heartbeats.services.schedule import fulfil_message
from apps.heartbeats.services.usage import day_of
from apps.memories.services.rounds import Round, make_round
from apps.memories.services.summaries import reset_failures
from apps.queues import enqueue
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.errors import ModelTimeout, ModelUnavailable, ReplyInvalid
from arbor.heartbeat.json_text import storable
from arbor.ids import uuid7
from arbor.memory.errands import asked_again
from arbor.models.ports import ModelReply, ModelRequest

log = structlog.get_logger(__name__)

#: How long after each failed try the next one is made. After the last of them the errand has failed.
WAITS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=25))
#: An answer that somebody waits for and that cannot be read is asked for again so often, at once (seed 003, 10.7).
ASKED_AGAIN = 2
#: The longest that a hint which nobody has followed is believed in before it is repeated.
_LONGEST_BELIEF = timedelta(hours=1)
#: Errands of one agent that one step tells of again.
_RECOVERED = 100

_ASK = """
INSERT INTO heartbeats_externalcall (tenant_id, id, agent_id, purpose, subject, subject_key, status, model, request,
    sections, dropped, reply, error, error_kind, attempts, failures, lease_until, requested_at)
VALUES (%(tenant)s, %(id)s, %(agent)s, %(purpose)s, %(subject)s, %(key)s, 'pending', %(model)s, %(request)s,
    %(sections)s, %(dropped)s, '', '', '', 0, 0, now() + %(lease)s, now())
ON CONFLICT DO NOTHING
RETURNING (SELECT name FROM agents_agent WHERE tenant_id = %(tenant)s AND id = %(agent)s)
"""
_COMPLETE = """
UPDATE heartbeats_externalcall
SET status = 'complete', reply = %(reply)s, error = '', error_kind = '', ended_at = now(), lease_until = NULL,
    due_at = NULL
WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'running' AND attempts = %(attempt)s
"""
_NOTE = """
UPDATE heartbeats_externalcall SET dropped = dropped || %(notes)s
WHERE tenant_id = %(tenant)s AND id = %(call)s
"""
_AGAIN = """
UPDATE heartbeats_externalcall
SET status = 'pending', reply = %(reply)s, error = %(error)s, error_kind = %(kind)s, failures = failures + 1,
    due_at = now() + %(wait)s, lease_until = now() + %(believed)s, request = %(request)s, model = %(model)s,
    subject = %(subject)s
WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'running' AND attempts = %(attempt)s
RETURNING (SELECT name FROM agents_agent a WHERE a.tenant_id = %(tenant)s AND a.id = agent_id)
"""
_GIVE_UP = """
UPDATE heartbeats_externalcall
SET status = 'failed', reply = %(reply)s, error = %(error)s, error_kind = %(kind)s, failures = failures + 1,
    ended_at = now(), lease_until = NULL, due_at = NULL
WHERE tenant_id = %(tenant)s AND id = %(call)s AND status = 'running' AND attempts = %(attempt)s
"""
# Those of suspended tenants rest.
_LOST = """
SELECT DISTINCT agent_id FROM heartbeats_externalcall
WHERE tenant_id = t.id AND subject_key <> '' AND status IN ('pending', 'running') AND lease_until < now()
    AND EXISTS (SELECT FROM tenants_tenant WHERE id = t.id AND status = 'active')
"""
_TAKE_LOST = """
SELECT c.id, c.status, c.model, c.request, c.attempts, c.subject, c.failures, a.name
FROM heartbeats_externalcall c JOIN agents_agent a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND c.subject_key <> ''
    AND c.status IN ('pending', 'running') AND c.lease_until < now()
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
_RETRY = """
UPDATE heartbeats_externalcall SET status = 'retried'
WHERE tenant_id = %(tenant)s AND (%(agent)s::uuid IS NULL OR agent_id = %(agent)s) AND subject_key <> ''
    AND status = 'failed' AND purpose <> 'chat'
RETURNING purpose, subject
"""
_FAILED = """
SELECT c.id, a.name, c.purpose, c.subject, c.model, c.error_kind || ': ' || c.error, c.ended_at
FROM heartbeats_externalcall c JOIN agents_agent a ON a.tenant_id = c.tenant_id AND a.id = c.agent_id
WHERE c.tenant_id = %(tenant)s AND (%(agent)s::uuid IS NULL OR c.agent_id = %(agent)s) AND c.subject_key <> ''
    AND c.status = 'failed' AND c.purpose <> 'chat'
ORDER BY c.ended_at DESC, c.id LIMIT %(limit)s
"""


@dataclass(frozen=True, kw_only=True)
class Errand:
    """What a model is to be asked, about what: `{"episode": id}`, `{"memories": [ids]}`, or a turn of a conversation."""

    subject: dict[str, Any]
    request: ModelRequest
    #: `provider/model`
    model: str
    #: What of its subject the prompt does not show.
    left_out: Sequence[str] = ()
    #: The prompt's parts: [{name, text, tokens}].
    sections: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, kw_only=True)
class FailedErrand:
    """An errand that failed for good, as people see it."""

    id: UUID
    agent: str
    purpose: str
    #: `an episode`, or how many memories.
    about: str
    model: str
    reason: str
    ended_at: datetime


class _WorkerLost(Exception):
    """No worker came back with an answer."""


def ask(*, agent_id: UUID, tenant_id: UUID, errand: Errand) -> bool:
    """Write an errand in the open transaction and tell the workers; False when one about that subject is open."""
    written = write_errand(agent_id=agent_id, errand=errand)
    if written is not None:
        call_id, name = written
        enqueue(fulfil_message(call_id=call_id, tenant_id=tenant_id, agent_name=name))
    return written is not None


def write_errand(*, agent_id: UUID, errand: Errand) -> tuple[UUID, str] | None:
    """Write an errand in the open transaction; return its id and its agent's name, none when one like it is open.

    Whoever writes it fulfils it, or tells the workers; else `recover_errands` does so later.
    """
    call_id = uuid7()
    rows = fetch(
        _ASK,
        id=call_id,
        agent=agent_id,
        purpose=errand.request.purpose.value,
        subject=Jsonb(errand.subject),
        key=subject_key(errand.subject),
        model=errand.model,
        request=Jsonb(errand.request.to_json()),
        sections=Jsonb(list(errand.sections)),
        dropped=Jsonb(list(errand.left_out)),
        lease=settings.ARBOR_QUEUE_LEASE,
    )
    return (call_id, rows[0][0]) if rows else None


def settle_errand(taken: Taken, reply: ModelReply) -> bool:
    """Read a reply, store it and do what it was for, in one transaction; False if this worker's lease was lost.

    A reply that cannot be used, and a fault in applying it, is a try that failed: nothing of it is kept but its text.
    """
    purpose = PURPOSES[taken.request.purpose]
    try:
        read = purpose.read(taken.subject, reply.text)
        prepared = purpose.prepare(taken.tenant_id, taken.agent_id, read)
        with tenant_transaction(taken.tenant_id):
            # What it cost was spent even if the reply came too late to count.
            charge_reply(taken, reply)
            note_truncated(taken, reply)
            stored = bool(
                change(_COMPLETE, call=taken.call_id, attempt=taken.attempt, reply=storable(reply.text))
            )
            if stored:
                notes = purpose.apply(taken.agent_id, taken.subject, prepared, taken.model)
                if notes:
                    change(_NOTE, call=taken.call_id, notes=Jsonb([storable(each) for each in notes]))
    except (OperationalError, InterfaceError):
        # The database went away: the lease brings the errand back.
        raise
    except Exception as error:
        if not isinstance(error, ReplyInvalid):
            # Whatever is wrong with what this reply says must not be met again for ever, nor stop other errands.
            log.exception("errand_fault", call_id=str(taken.call_id), purpose=taken.request.purpose)
        with tenant_transaction(taken.tenant_id):
            charge_reply(taken, reply, error_kind=type(error).__name__)
            note_truncated(taken, reply)
            return stumble(taken, error, reply=reply.text)
    if not stored:
        log.warning("call_lease_lost", call_id=str(taken.call_id))
    return stored


def stumble(taken: Taken, error: Exception, *, reply: str = "") -> bool:
    """Record a failed try in the open transaction: it is made again later, or the errand has failed for good.

    A model whose reply could not be read is told what was wrong. False if this worker's lease was lost.
    """
    again = _next_try(taken, error, reply)
    purpose = PURPOSES[taken.request.purpose]
    values: dict[str, Any] = {
        "call": taken.call_id,
        "attempt": taken.attempt,
        "reply": storable(reply),
        "error": storable(str(error)),
        "kind": type(error).__name__.lstrip("_"),
    }
    if again is not None:
        stored = _ask_again(taken, again, values)
    else:
        stored = bool(change(_GIVE_UP, **values))
        log.warning(
            "errand_failed", call_id=str(taken.call_id), purpose=taken.request.purpose, error=str(error)
        )
    if stored:
        reason = storable(f"{values['kind']}: {error}")
        purpose.failed(taken.agent_id, taken.subject, reason)
        if again is None:
            purpose.given_up(taken.agent_id, taken.subject, reason)
    return stored


@dataclass(frozen=True, kw_only=True)
class _Again:
    """The next try of an errand: after how long, and who is asked what."""

    wait: timedelta
    request: ModelRequest
    model: str
    subject: dict[str, Any]


def _ask_again(taken: Taken, again: _Again, values: Mapping[str, Any]) -> bool:
    """Write the next try. Who waits for the answer makes it itself; where that one was lost, workers are told at once."""
    rows = fetch(
        _AGAIN,
        **values,
        wait=again.wait,
        believed=again.wait or settings.ARBOR_QUEUE_LEASE,
        request=Jsonb(again.request.to_json()),
        model=again.model,
        subject=Jsonb(again.subject),
    )
    if rows and again.subject.get("told"):
        enqueue(fulfil_message(call_id=taken.call_id, tenant_id=taken.tenant_id, agent_name=rows[0][0]))
    return bool(rows)


def _next_try(taken: Taken, error: Exception, reply: str) -> _Again | None:
    """Return the try that follows a failed one; none where it is given up."""
    request, model, subject = taken.request, taken.model, taken.subject
    if isinstance(error, ReplyInvalid):
        request = asked_again(request, reply=storable(reply), fault=str(error))
    if not PURPOSES[request.purpose].waited_for:
        if taken.failures >= len(WAITS):
            return None
        return _Again(wait=WAITS[taken.failures], request=request, model=model, subject=subject)
    if isinstance(error, ReplyInvalid) and (asked := subject.get("asked_again", 0)) < ASKED_AGAIN:
        subject = {**subject, "asked_again": asked + 1}
    elif isinstance(error, ModelUnavailable | ModelTimeout) and subject.get("models_left"):
        model, *left = subject["models_left"]
        subject = {**subject, "models_left": left}
    else:
        return None
    return _Again(wait=timedelta(), request=request, model=model, subject=subject)


def failed_errands(*, agent_id: UUID | None = None, limit: int = 100) -> list[FailedErrand]:
    """Return the errands of an agent, or of the whole tenant, that failed for good, the latest first. One statement."""
    return [
        FailedErrand(
            id=call_id,
            agent=name,
            purpose=purpose,
            about=_about(json.loads(subject)),
            model=model,
            reason=reason,
            ended_at=ended_at,
        )
        for call_id, name, purpose, subject, model, reason, ended_at in fetch(
            _FAILED, agent=agent_id, limit=limit
        )
    ]


def _about(subject: dict[str, Any]) -> str:
    return "an episode" if "episode" in subject else f"{len(subject['memories'])} memories"


def retry_failed_errands(*, actor: str, agent_id: UUID | None = None) -> int:
    """Let what failed errands were about be asked about anew, in the open transaction; return how many errands it were.

    Of one agent, or of the whole tenant. The next round asks, with the prompts and the model of that day; the failed
    calls stay on record.
    """
    rows = fetch(_RETRY, agent=agent_id)
    episodes = [subject["episode"] for _, each in rows if "episode" in (subject := json.loads(each))]
    reset_failures(episodes)
    if rows:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"{len(rows)} failed calls of maintenance are to be made anew",
            detail={"purposes": dict(Counter(purpose for purpose, _ in rows))},
        )
    return len(rows)


def recover_errands() -> Round:
    """Tell the workers again of errands that nobody has taken, and let those whose worker was lost be tried again."""
    return make_round("errands", waiting=_LOST, tend=_recover)


def _recover(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        rows = fetch(_TAKE_LOST, agent=agent_id, limit=_RECOVERED)
        silent = [row for row in rows if row[1] == CallStatus.PENDING]
        if silent and not day_of(agent_id).level.may_tend:
            # They stay due, and the next day brings them; only people, who wait, are answered now.
            silent = [row for row in silent if "chat" in json.loads(row[5])]
        told = [(row[0], row[-1]) for row in silent]
        for row in rows:
            if row[1] == CallStatus.RUNNING:
                lost = _WorkerLost(f"worker {row[4]} took it and did not come back")
                stumble(_taken(tenant_id, agent_id, row), lost)
        if told:
            calls = [call_id for call_id, _ in told]
            change(_TELL, calls=calls, lease=settings.ARBOR_QUEUE_LEASE, longest=_LONGEST_BELIEF)
        for call_id, name in told:
            enqueue(fulfil_message(call_id=call_id, tenant_id=tenant_id, agent_name=name))
    return len(rows)


def _taken(tenant_id: UUID, agent_id: UUID, row: tuple[Any, ...]) -> Taken:
    call_id, _, model, request, attempt, subject, failures, _ = row
    return Taken(
        call_id=call_id,
        tenant_id=tenant_id,
        agent_id=agent_id,
        model=model,
        request=ModelRequest.from_json(json.loads(request)),
        attempt=attempt,
        subject=json.loads(subject),
        failures=failures,
    )
