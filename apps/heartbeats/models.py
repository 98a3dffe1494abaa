"""Heartbeats, and processes of the installation."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from apps.agents.models import Agent, Trigger
from apps.memories.models import Memory
from apps.tenants.fields import OnDelete, PackedJSON, PackedList, TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow
from arbor.heartbeat.results import complete_entry


class HeartbeatStatus(models.TextChoices):
    """The progress of a heartbeat, or its end."""

    #: A worker runs its pipeline.
    RUNNING = "running"
    #: The heartbeat waits for a model.
    WAITING = "waiting"
    #: The pipeline ran to its end.
    DONE = "done"
    #: The heartbeat ended by an error; the actions of its earlier round trips stay committed.
    FAILED = "failed"
    #: No model was asked, for the reason in `reason`.
    SKIPPED = "skipped"


class ActionEntries(PackedJSON):
    """The entries of a heartbeat's actions, stored without values that most of them have (`complete_entry`)."""

    def unpacked(self, packed: bytes) -> Any:
        """Return the entries with all of their keys."""
        entries = super().unpacked(packed)
        if not isinstance(entries, list):
            return entries
        return [complete_entry(entry) if isinstance(entry, dict) else entry for entry in entries]


class Heartbeat(TenantRow):
    """One autonomous cognitive cycle of one agent."""

    agent = TenantForeignKey(Agent, related_name="heartbeats")
    #: The due time, which identifies the heartbeat together with the agent.
    slot_at = models.DateTimeField()
    trigger = models.CharField(max_length=12, choices=Trigger, default=Trigger.TIMER)
    #: One more than the agent's completed heartbeats, so a failed one shares it with the next; 0 for a skipped one.
    number = models.BigIntegerField(default=0)
    status = models.CharField(max_length=8, choices=HeartbeatStatus)
    mode = models.CharField(max_length=20, blank=True)
    #: The fencing token of the lease: a write with another epoch matches no row.
    epoch = models.BigIntegerField()
    #: The number of checkpoints so far: a write from an earlier step matches no row.
    step = models.IntegerField(default=0)
    #: `arbor.pipeline.engine.Checkpoint` as JSON; empty after the end.
    checkpoint = PackedJSON(default=dict)
    energy_start = models.FloatField(null=True)
    energy_end = models.FloatField(null=True)
    #: `arbor.heartbeat.situation.Situation` as JSON.
    situation = PackedJSON(default=dict)
    #: The unit of the action budget.
    energy_unit = models.CharField(max_length=20, blank=True, default="", db_default="")
    #: The model's reasons for its decision.
    reasoning = models.TextField(blank=True)
    #: [{action, params, verdict, reason, cost, outcome, summary, …}] in order (`arbor.heartbeat.results.ActionRecord`).
    actions = ActionEntries(default=list)
    #: `arbor.heartbeat.results.GoalChange` values as JSON, in order.
    goal_changes = PackedJSON(default=list)
    #: Items of the reply that were not used: [{path, value, reason}].
    dropped = models.JSONField(default=list)
    #: Repairs that made the reply readable.
    repairs = models.JSONField(default=list)
    narrative = models.TextField(blank=True)
    emotional_valence = models.FloatField(null=True)
    #: 0 to 1.
    arousal = models.FloatField(null=True)
    #: The tier of the model, and the number of round trips.
    tier = models.CharField(max_length=12, blank=True, default="", db_default="")
    round_trips = models.PositiveSmallIntegerField(default=0, db_default=0)
    memory = TenantForeignKey(Memory, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: The reason of a failed or skipped heartbeat.
    reason = models.TextField(blank=True)
    #: The model asked: `provider/model`.
    model = models.CharField(max_length=200, blank=True)
    #: The nodes run, in order (`arbor.telemetry.RecordedStep` as JSON); read by `steps_of`.
    trace = PackedList(default=list)
    #: Milliseconds in Arbor's own code, without the model: the heartbeat's share of its legs, and the legs in total.
    own_ms = models.FloatField(default=0.0)
    elapsed_ms = models.FloatField(default=0.0, db_default=0.0)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering = ["-started_at"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "slot_at"], name="heartbeats_heartbeat_slot"),
            models.UniqueConstraint(
                fields=["tenant", "agent"],
                condition=models.Q(status__in=["running", "waiting"]),
                name="heartbeats_heartbeat_one_open",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "agent", "-started_at"], name="heartbeats_by_agent"),
            models.Index(fields=["tenant", "-started_at"], name="heartbeats_by_time"),
            # Few heartbeats, which people look for.
            models.Index(
                fields=["tenant", "status", "-started_at"],
                name="heartbeats_not_done",
                condition=models.Q(status__in=["failed", "skipped"]),
            ),
            # Finds the heartbeat whose reference is emptied when its memory is purged.
            models.Index(
                fields=["tenant", "memory"],
                name="heartbeats_by_memory",
                condition=models.Q(memory__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        # Skipped heartbeats have no number.
        return f"heartbeat {self.number} ({self.status})" if self.number else f"heartbeat ({self.status})"


class SpanExport(TenantRow):
    """The position among a tenant's signals up to which the spans of heartbeats were exported."""

    #: An `arbor.signals.Cursor`.
    position = models.CharField(max_length=60)
    exported_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant"], name="heartbeats_spanexport_once")]

    def __str__(self) -> str:
        return f"spans exported up to {self.position}"


class Process(models.Model):
    """A process that regularly reports itself as alive. The console reads these rows instead of asking the broker."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"
    ops_privileges: ClassVar[str] = "SELECT, DELETE"

    #: `HOST:PID`.
    name = models.CharField(max_length=200, primary_key=True)
    #: `worker` or `scheduler`.
    kind = models.CharField(max_length=12)
    #: Names of queues, separated by commas. Empty for a scheduler.
    queues = models.CharField(max_length=200, blank=True)
    pool = models.CharField(max_length=12, blank=True)
    concurrency = models.IntegerField(default=1)
    #: The handle of its model for agents without one of their own.
    model = models.CharField(max_length=200, blank=True, db_default="")
    #: {provider: {limit, sent, waiting}}: its calls to each provider that it has asked.
    calls = models.JSONField(default=dict, db_default={})
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return self.name
