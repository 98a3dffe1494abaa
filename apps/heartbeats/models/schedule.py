"""When an agent beats: all that the dispatcher touches."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models.functions import Greatest

from apps.agents.models import Agent
from apps.tenants.fields import StoredField, TenantOneToOne
from apps.tenants.models import TenantModel


class ScheduleState(models.TextChoices):
    """Where an agent stands in the dispatcher's eyes."""

    #: Waits for its next time.
    IDLE = "idle"
    #: Claimed; a worker has been told.
    QUEUED = "queued"
    #: A worker walks the pipeline, or a model is being waited for.
    RUNNING = "running"
    #: Not dispatched: paused, stopped, dormant, or given up after too many lost leases.
    OFF = "off"


class Trigger(models.TextChoices):
    """What brought a heartbeat about."""

    #: Its time had come.
    TIMER = "timer"
    #: An operator asked for it.
    OPERATOR = "operator"
    #: Somebody wrote to the agent.
    MESSAGE = "message"
    #: A conversation ended that mattered.
    CHAT = "chat"
    #: Something urgent happened.
    EVENT = "event"
    #: A drive became urgent.
    DRIVE = "drive"
    #: It is a tick of a cycle that was asked for.
    CYCLE = "cycle"


#: `HeartbeatSchedule.due_at` in a query; PostgreSQL's `greatest` passes over what is null.
DUE_AT = Greatest("next_due_at", "paused_until")


class HeartbeatSchedule(TenantModel):
    """When an agent beats next. All that the dispatcher touches."""

    ops_privileges: ClassVar[str] = "SELECT, UPDATE"

    agent = TenantOneToOne(Agent, primary_key=True, related_name="schedule")
    state = models.CharField(max_length=8, choices=ScheduleState, default=ScheduleState.OFF)
    next_due_at = models.DateTimeField()
    interval_s = models.FloatField()
    #: The due time of the heartbeat under way: its identity, with the agent.
    slot_at = models.DateTimeField(null=True)
    #: What the next time stands for; a claim hands it on to `trigger`.
    next_trigger = models.CharField(
        max_length=12, choices=Trigger, default=Trigger.TIMER, db_default=Trigger.TIMER.value
    )
    #: Until when no beat is claimed: somebody talks to the agent.
    paused_until = models.DateTimeField(null=True)
    #: What brought that heartbeat about.
    trigger = models.CharField(max_length=12, choices=Trigger, default=Trigger.TIMER)
    #: The lease's token: each claim makes a new one, and every later write carries it.
    epoch = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    #: Running leases lost in a row.
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.TextField(blank=True)
    #: Whether it is queued or running; empty while it is off. What the dispatcher looks for, as its indexes have it: they
    #: stay untouched while a heartbeat runs.
    in_flight = StoredField(
        expression=models.Case(
            models.When(
                state__in=[ScheduleState.QUEUED.value, ScheduleState.RUNNING.value], then=models.Value(True)
            ),
            models.When(state=ScheduleState.IDLE.value, then=models.Value(False)),
        ),
        output_field=models.BooleanField(null=True),
    )

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["next_due_at"], name="heartbeats_due", condition=models.Q(in_flight=False)),
            models.Index(
                fields=["tenant", "next_due_at"],
                name="heartbeats_due_tenant",
                condition=models.Q(in_flight=False),
            ),
            # They are few, and all are looked through: their leases are written too often to be in an index.
            models.Index(
                fields=["tenant", "agent"], name="heartbeats_in_flight", condition=models.Q(in_flight=True)
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(interval_s__gt=0), name="heartbeats_interval"),
        ]

    def __str__(self) -> str:
        return f"{self.state}, next {self.due_at:%Y-%m-%d %H:%M:%S}"

    @property
    def due_at(self) -> datetime:
        """Return when a beat may be claimed: at the next time, and not while somebody talks to the agent."""
        return max(self.next_due_at, self.paused_until or self.next_due_at)
