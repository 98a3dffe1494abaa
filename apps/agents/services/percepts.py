"""Percepts from persons and programs, and schedules that events bring forward or pause."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, get_args
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Value, When
from django.db.models.functions import Coalesce, Greatest, Least, Now

from apps.agents.models import HeartbeatSchedule, Percept, PerceptKind, ScheduleState, Trigger
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.errors import Invalid
from arbor.heartbeat.views import PERCEPT_LENGTH
from arbor.ids import uuid7
from arbor.memory.content import check_json, check_text
from arbor.signals import SignalName, signal

#: Kinds of percepts that persons and programs may create.
type PerceivableKind = Literal["environment", "interrupt", "error"]
PERCEIVABLE_KINDS: tuple[PerceptKind, ...] = tuple(
    PerceptKind(kind) for kind in get_args(PerceivableKind.__value__)
)
#: The most characters of the detail as JSON.
DETAIL_LENGTH = 4_000


def perceive(
    *,
    agent_id: UUID,
    kind: str,
    content: str,
    actor: str,
    urgent: bool = False,
    detail: Mapping[str, Any] | None = None,
) -> Percept:
    """Create a percept; an urgent one, and any interrupt, makes the agent due now.

    `kind` is environment, interrupt or error; `detail` is JSON of at most 4,000 characters. For an inactive agent the
    percept stays pending. Raises NotFound, Invalid.
    """
    if kind not in PERCEIVABLE_KINDS:
        raise Invalid(
            f"an agent can be notified of {', '.join(PERCEIVABLE_KINDS)}, not {kind!r}; `arbor agent tell` sends messages"
        )
    return create_percept(
        agent_id=agent_id, kind=PerceptKind(kind), content=content, actor=actor, urgent=urgent, detail=detail
    )


@transaction.atomic
def create_percept(
    *,
    agent_id: UUID,
    kind: PerceptKind,
    content: str,
    actor: str,
    urgent: bool = False,
    detail: Mapping[str, Any] | None = None,
    percept_id: UUID | None = None,
) -> Percept:
    """Create a percept of any kind, as `perceive` does. Raises NotFound, Invalid."""
    content = content.strip()
    if not 1 <= len(content) <= PERCEPT_LENGTH:
        raise Invalid(f"a percept has 1 to {PERCEPT_LENGTH:,} characters, got {len(content):,}")
    check_text("a percept", content)
    known = dict(detail or {})
    _check_detail(known)
    urgent = urgent or kind == PerceptKind.INTERRUPT
    agent = agent_by_id(agent_id)
    percept: Percept = Percept.objects.create(
        id=percept_id or uuid7(),
        tenant_id=current_tenant(),
        agent=agent,
        kind=kind,
        content=content,
        urgent=urgent,
        detail=known,
    )
    emit_percept(percept)
    if urgent:
        bring_forward(agent_id=agent_id, trigger=Trigger.EVENT)
    record(
        action=AuditAction.OPERATOR_ACT,
        actor=actor,
        agent_id=agent_id,
        message=f"added an event to what {agent.name} perceives ({kind}{', urgent' if urgent else ''})",
        detail={"percept_id": str(percept.id), "characters": len(content)},
    )
    return percept


def emit_percept(percept: Percept) -> None:
    """Emit the signal of a new percept."""
    emit(
        signal(
            SignalName.PERCEPT_RECEIVED,
            percept.agent_id,
            percept=percept.id,
            kind=percept.kind,
            urgent=percept.urgent,
        )
    )


def bring_forward(*, agent_id: UUID, trigger: Trigger, timers_only: bool = False) -> bool:
    """Make the agent due now, with this trigger, after the heartbeat under way, if there is one; False if it is inactive.

    With `timers_only`, a trigger other than the timer stays, because somebody waits for its answer.
    """
    cause = Case(When(next_trigger=Trigger.TIMER, then=Value(trigger.value)), default=F("next_trigger"))
    due = HeartbeatSchedule.objects.filter(agent_id=agent_id).exclude(state=ScheduleState.OFF)
    return bool(
        due.update(next_due_at=Least("next_due_at", Now()), next_trigger=cause if timers_only else trigger)
    )


def pause_schedule(*, agent_id: UUID, until: datetime) -> None:
    """Pause the agent's heartbeats until a time at least; a running one goes on."""
    HeartbeatSchedule.objects.filter(agent_id=agent_id).update(
        paused_until=Greatest(Coalesce("paused_until", until), until)
    )


def _check_detail(detail: Mapping[str, Any]) -> None:
    text = check_json("a percept's detail", detail)
    if len(text) > DETAIL_LENGTH:
        raise Invalid(f"a percept's detail has at most {DETAIL_LENGTH:,} characters, got {len(text):,}")
