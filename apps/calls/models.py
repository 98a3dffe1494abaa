"""External calls of heartbeats and maintenance, the ledger of their cost, and daily usage."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import OnDelete, PackedJSON, StoredField, TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow
from arbor.history import Record
from arbor.quotations import counted


class CallStatus(models.TextChoices):
    """The progress of an external call."""

    #: No worker has claimed the call.
    PENDING = "pending"
    #: A worker waits for the model.
    RUNNING = "running"
    #: The reply is stored.
    COMPLETE = "complete"
    #: There will be no reply.
    FAILED = "failed"
    #: A maintenance call that failed, whose subject a person has released for a new call.
    RETRIED = "retried"


class ExternalCall(TenantRow):
    """A durable request to a model, executed by a worker of the queue `llm`.

    The reply resumes the heartbeat of the call. A maintenance call has a subject instead of a heartbeat.
    """

    agent = TenantForeignKey(Agent, related_name="+")
    #: The heartbeat that the reply resumes; empty for a maintenance call. No foreign key: this app is below heartbeats.
    heartbeat_id = models.UUIDField(null=True, blank=True)
    #: The subject of a call without a heartbeat: an episode, memories, a turn or a step (`apps.calls.services.maintenance_calls`).
    subject = models.JSONField(db_default={}, default=dict)
    #: Identifies the subject, which has at most one open call of each purpose. Empty for the call of a heartbeat.
    subject_key = models.CharField(max_length=60, blank=True, db_default="")
    purpose = models.CharField(max_length=12)
    status = models.CharField(max_length=8, choices=CallStatus, default=CallStatus.PENDING)
    #: `provider/model`
    model = models.CharField(max_length=200)
    #: `arbor.models.ports.ModelRequest` as JSON, a heartbeat's with the inputs of its schema instead of the schema. Emptied
    #: after a while for a maintenance call.
    request = PackedJSON()
    #: The prompt's sections: [{name, text, tokens, cut}], or a heartbeat's as `arbor.heartbeat.prompts.questions.stored_sections`.
    sections = PackedJSON(default=list)
    #: The text as the model wrote it; empty without one.
    reply = PackedJSON(default="")
    error = models.TextField(blank=True)
    error_kind = models.CharField(max_length=40, blank=True)
    #: Parts left out of the prompt and parts of the reply that were not used, with reasons: [text].
    dropped = models.JSONField(db_default=[], default=list)
    #: Number of leases so far, as a fencing token: only the latest worker can store a result.
    attempts = models.PositiveSmallIntegerField(default=0)
    #: Failed tries of a maintenance call, and the earliest time of the next; empty: at once.
    failures = models.PositiveSmallIntegerField(db_default=0)
    due_at = models.DateTimeField(null=True)
    #: The end of its worker's lease; of a pending maintenance call, the time until which a worker should have claimed the call.
    lease_until = models.DateTimeField(null=True)
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    #: Status and lease of a maintenance call. Empty for calls of heartbeats, so that their writes touch no index.
    errand_status = StoredField(
        expression=models.Case(models.When(~models.Q(subject_key=""), then="status")),
        output_field=models.CharField(max_length=8, null=True),
    )
    errand_lease = StoredField(
        expression=models.Case(models.When(~models.Q(subject_key=""), then="lease_until")),
        output_field=models.DateTimeField(null=True),
    )

    class Meta(TenantModel.Meta):
        verbose_name = "model call"
        ordering = ["requested_at"]
        indexes = [
            models.Index(fields=["tenant", "heartbeat_id", "requested_at"], name="calls_by_heartbeat"),
            # For lists of an agent's calls, and for its deletion.
            models.Index(fields=["tenant", "agent", "id"], name="calls_by_agent"),
            # By the error: an index on the status would be written by each call.
            models.Index(fields=["tenant", "id"], name="calls_failed", condition=~models.Q(error_kind="")),
            models.Index(
                fields=["tenant", "agent", "purpose"],
                name="calls_maintenance_unfinished",
                condition=models.Q(errand_status__in=["pending", "running", "failed"]),
            ),
            models.Index(
                fields=["tenant", "errand_lease"],
                name="calls_maintenance_lease",
                condition=models.Q(errand_status__in=["pending", "running"]),
            ),
            models.Index(
                fields=["tenant", "requested_at"],
                name="calls_maintenance_prompts",
                condition=models.Q(errand_status="complete") & ~models.Q(request={}),
            ),
            models.Index(
                fields=["tenant", "requested_at"],
                name="calls_maintenance_by_time",
                condition=~models.Q(subject_key=""),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "purpose", "subject_key"],
                name="calls_maintenance_one_open",
                condition=models.Q(errand_status__in=["pending", "running"]),
            ),
            models.CheckConstraint(
                condition=models.Q(heartbeat_id__isnull=True) ^ models.Q(subject_key=""),
                name="calls_of_heartbeat_or_maintenance",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} by {self.model}: {self.status}"


class LedgerEntry(TenantRow):
    """Tokens, cost and time of one model call."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"
    ops_privileges: ClassVar[str] = "SELECT, DELETE"
    deleted_after: ClassVar[Record] = Record.LEDGER

    agent = TenantForeignKey(Agent, related_name="+")
    #: Empty once the call was deleted by age: costs are looked at for longer.
    call = TenantForeignKey(ExternalCall, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    purpose = models.CharField(max_length=12)
    provider = models.CharField(max_length=60)
    model = models.CharField(max_length=200)
    #: As the provider counted them, and as Arbor estimated them before; 0 where there is no estimate.
    input_tokens = models.IntegerField()
    estimated_tokens = models.IntegerField(default=0, db_default=0)
    output_tokens = models.IntegerField()
    cached_tokens = models.IntegerField(default=0)
    #: In US dollars; empty when the model's price is not known.
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    latency_ms = models.FloatField()
    #: Requests sent until one succeeded or the last one failed.
    tries = models.PositiveSmallIntegerField(default=1)
    #: The error of a call without a usable reply; empty otherwise.
    error_kind = models.CharField(max_length=40, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "ledger entries"
        indexes = [
            models.Index(fields=["tenant", "-at"], name="calls_ledger_by_time"),
            models.Index(fields=["tenant", "agent", "-at"], name="calls_ledger_by_agent"),
            models.Index(fields=["tenant", "call"], name="calls_ledger_by_call"),
        ]

    def __str__(self) -> str:
        return f"{self.model}: {self.input_tokens} + {self.output_tokens} tokens"


class DailyUsage(TenantRow):
    """The usage of one agent on one day (UTC)."""

    agent = TenantForeignKey(Agent, related_name="+")
    day = models.DateField()
    heartbeats = models.PositiveIntegerField(default=0, db_default=0)
    calls = models.PositiveIntegerField(default=0, db_default=0)
    tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    cost_usd = models.DecimalField(max_digits=14, decimal_places=8, default=0, db_default=0)
    #: The `arbor.heartbeat.usage.BudgetLevel` when last checked.
    level = models.CharField(max_length=12, default="normal", db_default="normal")

    class Meta(TenantModel.Meta):
        verbose_name = "daily usage"
        verbose_name_plural = "daily usage"
        ordering = ["-day"]
        constraints = [models.UniqueConstraint(fields=["tenant", "agent", "day"], name="calls_usage_once")]
        indexes = [
            models.Index(fields=["tenant", "day"], name="calls_usage_by_day"),
            models.Index(
                fields=["tenant", "day"], name="calls_usage_low", condition=~models.Q(level="normal")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day}: {counted(self.heartbeats, 'heartbeat')}, {counted(self.tokens, 'token')}"


class TokenRatio(TenantRow):
    """The tokens that a model counts for an estimated one (`arbor.models.windows`), learnt from the ledger."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE"

    #: `provider/model`
    model = models.CharField(max_length=200)
    #: Within the bounds of `arbor.models.windows`.
    ratio = models.FloatField()
    #: The number of calls that it was learnt from, and when.
    calls = models.PositiveIntegerField()
    learnt_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [models.UniqueConstraint(fields=["tenant", "model"], name="calls_token_ratio_once")]

    def __str__(self) -> str:
        return f"{self.model}: {self.ratio:.2f}"


class ProviderKey(TenantRow):
    """A tenant's own access to a provider of models; the key only as a sealed record, which no page shows."""

    ops_privileges: ClassVar[str] = ""

    #: An `arbor.models.handles.Provider`.
    provider = models.CharField(max_length=12)
    #: The address of a server that is not the provider's own; empty: the provider's.
    base_url = models.CharField(max_length=500, blank=True)
    #: {v, k, ct, iv, tag} under master key k, bound to the tenant, the provider and the address; empty: a server without a key.
    sealed_key = models.JSONField(default=dict)
    #: The last characters of the key.
    key_end = models.CharField(max_length=4, blank=True)
    #: The models that the provider listed when it was asked last: [name].
    listed = models.JSONField(default=list)
    checked_at = models.DateTimeField()
    #: The actor who entered the key, as in the audit log.
    entered_by = models.CharField(max_length=200)
    entered_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        verbose_name = "key of a provider"
        verbose_name_plural = "keys of providers"
        ordering = ["provider"]
        constraints = [models.UniqueConstraint(fields=["tenant", "provider"], name="calls_provider_key_once")]

    def __str__(self) -> str:
        return self.provider
