"""Figures of an agent's last day (seed 004, `heartbeat_health`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Avg, F
from django.db.models.functions import Now

from apps.contacts.models import OutboxMessage
from apps.heartbeats.models import Heartbeat, HeartbeatStatus

_DAY = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True)
class DayFigures:
    """An agent's use of energy, and its messages, in the last 24 hours."""

    #: The mean change of energy by a heartbeat; None without a completed one, or under another budget.
    energy_delta: float | None
    #: Messages to users and to the public.
    reach_outs: int


def day_figures(agent_id: UUID) -> DayFigures:
    """Read the figures of an agent's last day."""
    beats = Heartbeat.objects.filter(
        agent_id=agent_id,
        status=HeartbeatStatus.DONE,
        energy_unit="energy",
        started_at__gt=Now() - _DAY,
    )
    delta = beats.aggregate(mean=Avg(F("energy_end") - F("energy_start")))["mean"]
    messages = OutboxMessage.objects.filter(agent_id=agent_id, created_at__gt=Now() - _DAY)
    return DayFigures(
        energy_delta=None if delta is None else round(delta, 2),
        # A message to several channels is one.
        reach_outs=len(set(messages.values_list("heartbeat_id", "content"))),
    )
