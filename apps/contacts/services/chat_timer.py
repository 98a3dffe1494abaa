"""Pause an agent's timer while a conversation is open (seed 004, 5.3)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Max
from django.db.models.functions import Coalesce, Greatest, Least, Now

from apps.agents.models import HeartbeatSchedule, ScheduleState, Trigger
from apps.contacts.models import ChatSession


def rest_timer(*, agent_id: UUID, until: datetime) -> None:
    """Pause the agent's heartbeats until a time; a running one goes on."""
    HeartbeatSchedule.objects.filter(agent_id=agent_id).update(
        paused_until=Greatest(Coalesce("paused_until", until), until)
    )


def resume_timer(*, agent_id: UUID) -> None:
    """Resume the agent's heartbeats: at once, or when its other conversations are idle."""
    last = ChatSession.objects.filter(agent_id=agent_id, ended_at__isnull=True).aggregate(last=Max("last_at"))
    until = last["last"] and last["last"] + settings.ARBOR_CHAT_IDLE
    HeartbeatSchedule.objects.filter(agent_id=agent_id).update(paused_until=until)


def beat_at_once(*, agent_id: UUID) -> bool:
    """Bring the agent's next heartbeat forward to now, because of a conversation; False if the agent is not active."""
    return bool(
        HeartbeatSchedule.objects.filter(agent_id=agent_id)
        .exclude(state=ScheduleState.OFF)
        .update(next_due_at=Least("next_due_at", Now()), next_trigger=Trigger.CHAT)
    )
