"""The heartbeat as durable rows: when it is due, how far it has come, what it asked of models, what it cost."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.tenants.fields import OnDelete, TenantForeignKey, TenantOneToOne
from apps.tenants.models import TenantModel
from arbor.ids import uuid7


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


class HeartbeatSchedule(TenantModel):
    """When an agent beats next. All that the dispatcher touches."""

    ops_privileges: ClassVar[str] = "SELECT, UPDATE"

    agent = TenantOneToOne(Agent, primary_key=True, related_name="schedule")
    state = models.CharField(max_length=8, choices=ScheduleState, default=ScheduleState.OFF)
    next_due_at = models.DateTimeField()
    interval_s = models.FloatField()
    #: The due time of the heartbeat under way: its identity, with the agent.
    slot_at = models.DateTimeField(null=True)
    #: What brought that heartbeat about.
    trigger = models.CharField(max_length=12, choices=Trigger, default=Trigger.TIMER)
    #: The lease's token: each claim makes a new one, and every later write carries it.
    epoch = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    #: Running leases lost in a row.
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.TextField(blank=True)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["next_due_at"], name="heartbeats_due", condition=models.Q(state="idle")),
            models.Index(
                fields=["tenant", "next_due_at"],
                name="heartbeats_due_tenant",
                condition=models.Q(state="idle"),
            ),
            models.Index(
                fields=["lease_until"],
                name="heartbeats_lease",
                condition=models.Q(state__in=["queued", "running"]),
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(interval_s__gt=0), name="heartbeats_interval"),
        ]

    def __str__(self) -> str:
        return f"{self.state}, next {self.next_due_at:%Y-%m-%d %H:%M:%S}"


class HeartbeatStatus(models.TextChoices):
    """How far a heartbeat has come, or how it ended."""

    #: Its pipeline is being walked.
    RUNNING = "running"
    #: It waits for a model.
    WAITING = "waiting"
    #: It ran to its end.
    DONE = "done"
    #: It ended without a decision; nothing was done in its name.
    FAILED = "failed"
    #: It never began; the receipt says why.
    SKIPPED = "skipped"


class Heartbeat(TenantModel):
    """One autonomous cognitive cycle of one agent."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="heartbeats")
    #: The due time it stands for: with the agent, its identity.
    slot_at = models.DateTimeField()
    trigger = models.CharField(max_length=12, choices=Trigger, default=Trigger.TIMER)
    #: Counts the agent's heartbeats that ran; 0 for a skipped one.
    number = models.BigIntegerField(default=0)
    status = models.CharField(max_length=8, choices=HeartbeatStatus)
    mode = models.CharField(max_length=20, blank=True)
    #: The token of the lease it runs under; a write under another finds no row.
    epoch = models.BigIntegerField()
    #: Counts its checkpoints; a write from an earlier one finds no row.
    step = models.IntegerField(default=0)
    #: `arbor.pipeline.progress.Checkpoint` as JSON; empty when it has ended.
    checkpoint = models.JSONField(default=dict)
    energy_start = models.FloatField(null=True)
    energy_end = models.FloatField(null=True)
    #: What it saw (`arbor.heartbeat.situation.Situation` as JSON).
    situation = models.JSONField(default=dict)
    #: Why it decided so, in the model's words.
    reasoning = models.TextField(blank=True)
    #: [{action, params, verdict, reason, cost, result, …}] in order.
    actions = models.JSONField(default=list)
    #: [{goal_id, change}]
    goal_changes = models.JSONField(default=list)
    #: Items of the reply that were not used: [{path, value, reason}].
    dropped = models.JSONField(default=list)
    #: What had to be mended before the reply could be read.
    repairs = models.JSONField(default=list)
    narrative = models.TextField(blank=True)
    emotional_valence = models.FloatField(null=True)
    memory = TenantForeignKey(Memory, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: Why it failed or was skipped.
    reason = models.TextField(blank=True)
    #: `provider/model` that was asked.
    model = models.CharField(max_length=200, blank=True)
    #: Time in Arbor's own code, the model's excluded, in milliseconds.
    own_ms = models.FloatField(default=0.0)
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
            # For the operator's figures over all tenants.
            models.Index(fields=["started_at"], name="heartbeats_by_time_all"),
        ]

    def __str__(self) -> str:
        return f"heartbeat {self.number} ({self.status})"


class Step(TenantModel):
    """One node of the pipeline that a heartbeat passed: the trace."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    heartbeat = TenantForeignKey(Heartbeat, related_name="steps")
    sequence = models.IntegerField()
    node = models.CharField(max_length=60)
    handler = models.CharField(max_length=60)
    phase = models.CharField(max_length=8)
    outcome = models.CharField(max_length=10)
    #: What it changed, one line each.
    changed = models.JSONField(default=list)
    started_at = models.DateTimeField()
    duration_ms = models.FloatField()

    class Meta(TenantModel.Meta):
        ordering = ["sequence"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "heartbeat", "sequence"], name="heartbeats_step_sequence"
            )
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.outcome}"


class CallStatus(models.TextChoices):
    """How far an external call has come."""

    #: No worker has it.
    PENDING = "pending"
    #: A worker waits for the model.
    RUNNING = "running"
    #: The reply is stored.
    COMPLETE = "complete"
    #: There will be no reply.
    FAILED = "failed"
    #: An errand that failed, and whose subject a person has let be asked about anew.
    RETRIED = "retried"


class ExternalCall(TenantModel):
    """A durable request for a model; a worker of the model queue fulfils it.

    A heartbeat's call lets it go on. Maintenance's, an errand, belongs to no heartbeat and names its subject.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="+")
    heartbeat = TenantForeignKey(Heartbeat, null=True, blank=True, related_name="calls")
    #: What an errand is about: {"episode": id} or {"memories": [ids]}.
    subject = models.JSONField(db_default={}, default=dict)
    #: Names that subject; of one subject at most one errand is open. Empty: it is no errand.
    subject_key = models.CharField(max_length=60, blank=True, db_default="")
    purpose = models.CharField(max_length=12)
    status = models.CharField(max_length=8, choices=CallStatus, default=CallStatus.PENDING)
    #: `provider/model` to ask.
    model = models.CharField(max_length=200)
    #: `arbor.models.ports.ModelRequest` as JSON: the prompt by section and as sent.
    request = models.JSONField()
    #: The prompt's sections: [{name, text, tokens}].
    sections = models.JSONField(default=list)
    reply = models.TextField(blank=True)
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=40, blank=True)
    #: Counts the workers that took it; the last one's write counts.
    attempts = models.PositiveSmallIntegerField(default=0)
    #: Tries of an errand that brought nothing, and when the next one may be; empty: at once.
    failures = models.PositiveSmallIntegerField(db_default=0)
    due_at = models.DateTimeField(null=True)
    #: Until when its worker, or the hint that it waits, is believed in.
    lease_until = models.DateTimeField(null=True)
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering = ["requested_at"]
        indexes = [
            models.Index(fields=["tenant", "heartbeat", "requested_at"], name="heartbeats_call_by_beat"),
            models.Index(
                fields=["tenant", "agent", "purpose"],
                name="heartbeats_errand_unfinished",
                condition=~models.Q(subject_key="") & models.Q(status__in=["pending", "running", "failed"]),
            ),
            models.Index(
                fields=["tenant", "lease_until"],
                name="heartbeats_errand_lease",
                condition=~models.Q(subject_key="") & models.Q(status__in=["pending", "running"]),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "purpose", "subject_key"],
                name="heartbeats_errand_one_open",
                condition=~models.Q(subject_key="") & models.Q(status__in=["pending", "running"]),
            ),
            models.CheckConstraint(
                condition=models.Q(heartbeat__isnull=True) ^ models.Q(subject_key=""),
                name="heartbeats_call_of_beat_or_errand",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}: {self.status}"


class LedgerEntry(TenantModel):
    """What one model call cost."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="+")
    call = TenantForeignKey(ExternalCall, related_name="+")
    purpose = models.CharField(max_length=12)
    provider = models.CharField(max_length=60)
    model = models.CharField(max_length=200)
    input_tokens = models.IntegerField()
    output_tokens = models.IntegerField()
    cached_tokens = models.IntegerField(default=0)
    #: In US dollars; empty when the model's price is not known.
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    latency_ms = models.FloatField()
    #: Requests that were sent until one succeeded, or the last one failed.
    tries = models.PositiveSmallIntegerField(default=1)
    #: What ended a call that brought no reply; empty for one that did.
    error_kind = models.CharField(max_length=40, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "ledger entries"
        indexes = [models.Index(fields=["tenant", "-at"], name="heartbeats_ledger_by_time")]

    def __str__(self) -> str:
        return f"{self.model}: {self.input_tokens} + {self.output_tokens} tokens"


class PerceptKind(models.TextChoices):
    """What an agent can perceive between two heartbeats."""

    #: Somebody wrote to it.
    USER_MESSAGE = "user_message"


class Percept(TenantModel):
    """Something that reached an agent and waits for its next heartbeat."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="percepts")
    kind = models.CharField(max_length=16, choices=PerceptKind)
    content = models.TextField()
    at = models.DateTimeField(auto_now_add=True)
    #: The heartbeat that took it in; empty while it waits.
    heartbeat = TenantForeignKey(Heartbeat, deleting=OnDelete.SET_NULL, null=True, related_name="+")

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(
                fields=["tenant", "agent", "at"],
                name="heartbeats_percept_waiting",
                condition=models.Q(heartbeat__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.content[:60]}"


class Process(models.Model):
    """A process of the platform, by its own word: the console asks these rows, never the broker."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"
    ops_privileges: ClassVar[str] = "SELECT, DELETE"

    #: `HOST:PID`
    name = models.CharField(max_length=200, primary_key=True)
    #: `worker` or `beat`.
    kind = models.CharField(max_length=12)
    queues = models.CharField(max_length=200, blank=True)
    pool = models.CharField(max_length=12, blank=True)
    concurrency = models.IntegerField(default=1)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return self.name
