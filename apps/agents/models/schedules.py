"""Schedules of agents: the rows that the dispatcher claims."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.db import models
from django.db.models.functions import Greatest

from apps.agents.models.agents import Agent
from apps.tenants.fields import StoredField, TenantOneToOne
from apps.tenants.models import TenantModel


class ScheduleState(models.TextChoices):
    """The state of an agent for the dispatcher."""

    #: Waits until the next heartbeat is due.
    IDLE = "idle"
    #: Claimed; a message is published.
    QUEUED = "queued"
    #: A worker runs its heartbeat, or the heartbeat waits for a model.
    RUNNING = "running"
    #: Not dispatched: paused, stopped, dormant, or abandoned after too many lost leases.
    OFF = "off"


class Trigger(models.TextChoices):
    """The cause of a heartbeat."""

    #: The heartbeat was due.
    TIMER = "timer"
    #: An operator requested the heartbeat.
    OPERATOR = "operator"
    #: Somebody wrote to the agent.
    MESSAGE = "message"
    #: A significant conversation ended.
    CHAT = "chat"
    #: Something urgent happened.
    EVENT = "event"
    #: A drive became urgent.
    DRIVE = "drive"
    #: The heartbeat is a tick of a cycle.
    CYCLE = "cycle"


#: `HeartbeatSchedule.due_at` in a query; PostgreSQL's `greatest` ignores null.
DUE_AT = Greatest("next_due_at", "paused_until")


class HeartbeatSchedule(TenantModel):
    """The time of an agent's next heartbeat, and the lease of the one under way."""

    ops_privileges: ClassVar[str] = "SELECT, UPDATE"

    agent = TenantOneToOne(Agent, primary_key=True, related_name="schedule")
    state = models.CharField(max_length=8, choices=ScheduleState, default=ScheduleState.OFF)
    next_due_at = models.DateTimeField()
    interval_s = models.FloatField()
    #: The due time of the heartbeat under way, which identifies it together with the agent.
    slot_at = models.DateTimeField(null=True)
    #: The cause of the next heartbeat; a claim copies it to `trigger`.
    next_trigger = models.CharField(
        max_length=12, choices=Trigger, default=Trigger.TIMER, db_default=Trigger.TIMER.value
    )
    #: No heartbeat is claimed before this time, while somebody talks to the agent.
    paused_until = models.DateTimeField(null=True)
    #: The cause of the heartbeat under way.
    trigger = models.CharField(max_length=12, choices=Trigger, default=Trigger.TIMER)
    #: The fencing token of the lease: each claim increments it, and each later write checks it.
    epoch = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    #: The number of running leases that were lost in a row.
    attempts = models.PositiveSmallIntegerField(default=0)
    #: The reason for which the last heartbeat failed; empty: it did not.
    last_error = models.TextField(blank=True)
    #: Whether the agent is queued or running; null while off. Has the dispatcher's indexes, and is unchanged while a
    #: heartbeat runs.
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
        db_table = "heartbeats_heartbeatschedule"
        indexes = [
            models.Index(fields=["next_due_at"], name="heartbeats_due", condition=models.Q(in_flight=False)),
            models.Index(
                fields=["tenant", "next_due_at"],
                name="heartbeats_due_tenant",
                condition=models.Q(in_flight=False),
            ),
            # Lease times are not indexed, because they change too often; the few rows in flight are all scanned.
            models.Index(
                fields=["tenant", "agent"], name="heartbeats_in_flight", condition=models.Q(in_flight=True)
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(interval_s__gt=0), name="heartbeats_interval"),
        ]

    def __str__(self) -> str:
        return f"{self.state}, next {self.due_at:%Y-%m-%d %H:%M:%S} UTC"

    @property
    def due_at(self) -> datetime:
        """Return the time from which the next heartbeat may be claimed; never during a conversation with the agent."""
        return max(self.next_due_at, self.paused_until or self.next_due_at)
