"""Heartbeats: how far each has come, what it did, and what reached an agent between two of them."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.heartbeats.models.schedule import Trigger
from apps.memories.models import Memory
from apps.tenants.fields import OnDelete, PackedJSON, PackedList, TenantForeignKey
from apps.tenants.models import TenantModel
from arbor.ids import uuid7


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
    checkpoint = PackedJSON(default=dict)
    energy_start = models.FloatField(null=True)
    energy_end = models.FloatField(null=True)
    #: What it saw (`arbor.heartbeat.situation.Situation` as JSON).
    situation = PackedJSON(default=dict)
    #: What its budget is counted in, as the situation says.
    energy_unit = models.CharField(max_length=20, blank=True, default="", db_default="")
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
    #: How stirred the agent was, 0 to 1.
    arousal = models.FloatField(null=True)
    #: The tier of thinking it was given, and how many turns it thought.
    tier = models.CharField(max_length=12, blank=True, default="", db_default="")
    turns = models.PositiveSmallIntegerField(default=0, db_default=0)
    memory = TenantForeignKey(Memory, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: Why it failed or was skipped.
    reason = models.TextField(blank=True)
    #: `provider/model` that was asked.
    model = models.CharField(max_length=200, blank=True)
    #: The nodes it passed, in order (`apps.heartbeats.services.trace.Step` as JSON); read by `steps_of`.
    trace = PackedList(default=list)
    #: Time in Arbor's own code, the model's excluded, in milliseconds: its share of the batches that it went in, and
    #: how long these took.
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
        ]

    def __str__(self) -> str:
        # One that never began has no number.
        return f"heartbeat {self.number} ({self.status})" if self.number else f"heartbeat ({self.status})"


class PerceptKind(models.TextChoices):
    """What an agent can perceive between two heartbeats."""

    #: Somebody wrote to it.
    USER_MESSAGE = "user_message"
    #: Another agent of its tenant wrote to it.
    PEER_MESSAGE = "peer_message"
    #: Something it had set going has ended.
    ACTION_RESULT = "action_result"
    #: Something happened around it.
    ENVIRONMENT = "environment"
    #: Something went wrong.
    ERROR = "error"
    #: Something did not come in time: a step was given up when all heartbeats that it may take were spent.
    TIMEOUT = "timeout"
    #: Somebody stops it in what it does.
    INTERRUPT = "interrupt"


class Percept(TenantModel):
    """Something that reached an agent and waits for its next heartbeat."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="percepts")
    kind = models.CharField(max_length=16, choices=PerceptKind)
    content = models.TextField()
    #: The agent that it came from, if one did.
    peer = TenantForeignKey(Agent, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: What it is about: {"goal": id, "intent": id, "message": id, …}.
    detail = models.JSONField(default=dict, db_default={})
    #: Whether it brought the next heartbeat forward.
    urgent = models.BooleanField(default=False, db_default=False)
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
