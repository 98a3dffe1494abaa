"""Maintenance calls, which have a subject instead of a heartbeat: write, enqueue and cancel them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now
from psycopg.types.json import Jsonb

from apps.calls.models import CallStatus, ExternalCall
from apps.calls.services.leased_calls import execution_message
from apps.queues import enqueue
from apps.tenants.packing import pack, sql_literal
from apps.tenants.statements import fetch
from arbor.ids import uuid7
from arbor.models.ports import ModelRequest

#: The subject of a call, as JSON.
type Subject = Mapping[str, Any]

_INSERT = f"""
INSERT INTO calls_externalcall (tenant_id, id, agent_id, purpose, subject, subject_key, status, model, request,
    sections, dropped, reply, error, error_kind, attempts, failures, lease_until, requested_at)
VALUES (%(tenant)s, %(id)s, %(agent)s, %(purpose)s, %(subject)s, %(key)s, 'pending', %(model)s, %(request)s,
    %(sections)s, %(dropped)s, {sql_literal("")}, '', '', 0, 0, now() + %(lease)s, now())
ON CONFLICT DO NOTHING
RETURNING (SELECT name FROM agents_agent WHERE tenant_id = %(tenant)s AND id = %(agent)s)
"""  # noqa: S608 (no external input)


@dataclass(frozen=True, kw_only=True)
class MaintenanceCall:
    """A request to a model and its subject, as the functions `subject_of_…` return it."""

    subject: dict[str, Any]
    request: ModelRequest
    #: `provider/model`
    model: str
    #: Parts of the subject that the prompt leaves out.
    left_out: Sequence[str] = ()
    #: The prompt's sections: [{name, text, tokens, cut}].
    sections: Sequence[dict[str, Any]] = ()


def enqueue_maintenance_call(*, agent_id: UUID, tenant_id: UUID, call: MaintenanceCall) -> bool:
    """Write a maintenance call in the open transaction and enqueue it; return False if `write_maintenance_call` returns None."""
    written = write_maintenance_call(agent_id=agent_id, call=call)
    if written is not None:
        call_id, name = written
        enqueue(execution_message(call_id=call_id, tenant_id=tenant_id, agent_name=name))
    return written is not None


def write_maintenance_call(*, agent_id: UUID, call: MaintenanceCall) -> tuple[UUID, str] | None:
    """Write a maintenance call in the open transaction; return its id and its agent's name.

    Returns None if its subject has an open call of the same purpose. The caller executes or enqueues the call; otherwise
    `recover_maintenance_calls` enqueues it later.
    """
    call_id = uuid7()
    rows = fetch(
        _INSERT,
        id=call_id,
        agent=agent_id,
        purpose=call.request.purpose.value,
        subject=Jsonb(call.subject),
        key=subject_key(call.subject),
        model=call.model,
        request=pack(call.request.to_json()),
        sections=pack(call.sections),
        dropped=Jsonb(list(call.left_out)),
        lease=settings.ARBOR_QUEUE_LEASE,
    )
    return (call_id, rows[0][0]) if rows else None


def cancel_maintenance_call(*, agent_id: UUID, subject: Subject, reason: str) -> bool:
    """Mark the open call of a subject as failed, so that its reply is not used; return False while a worker settles it.

    The model may still be writing its reply, which is paid for.
    """
    open_calls = ExternalCall.objects.filter(
        agent_id=agent_id,
        subject_key=subject_key(subject),
        status__in=[CallStatus.PENDING, CallStatus.RUNNING],
    )
    # Whoever settles a call locks it before the conversation.
    free = list(open_calls.select_for_update(skip_locked=True).values_list("id", flat=True))
    if open_calls.count() > len(free):
        return False
    ExternalCall.objects.filter(id__in=free).update(
        status=CallStatus.FAILED,
        error=reason,
        error_kind="Canceled",
        ended_at=Now(),
        lease_until=None,
        due_at=None,
    )
    return True


def subject_of_episode(episode_id: UUID, *, size: int) -> dict[str, Any]:
    """Return the subject of a call about an episode with `size` members."""
    return {"episode": str(episode_id), "size": size}


def subject_of_memories(memory_ids: Sequence[UUID]) -> dict[str, Any]:
    """Return the subject of a call about memories, in the order of their numbers in the prompt."""
    return {"memories": [str(memory_id) for memory_id in memory_ids]}


def subject_of_turn(
    session_id: UUID, turn_id: UUID, *, recalled: Sequence[dict[str, Any]], models_left: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the subject of a call about a turn of a conversation, with its recalled memories: [{id, score}].

    `models_left` are the fallback models, in order.
    """
    return {
        "chat": str(session_id),
        "turn": str(turn_id),
        "recalled": list(recalled),
        "models_left": list(models_left),
    }


def subject_of_step(step_id: UUID, *, attempt: int) -> dict[str, Any]:
    """Return the subject of a call for a try of a workflow step."""
    return {"step": str(step_id), "attempt": attempt}


def subject_key(subject: Subject) -> str:
    """Return the key of a subject: its kind, and the id of its episode, conversation, step (with the try) or first memory."""
    if "step" in subject:
        return f"step:{subject['step']}:{subject['attempt']}"
    if "chat" in subject:
        return f"chat:{subject['chat']}"
    if "episode" in subject:
        return f"episode:{subject['episode']}"
    return f"memories:{subject['memories'][0]}"
