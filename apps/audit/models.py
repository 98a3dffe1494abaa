"""The audit log: who did what, written once, never changed, deleted only by age."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from apps.tenants.fields import TenantOneToOne, choices_of
from apps.tenants.models import TenantModel
from arbor.audit.levels import AuditLevel
from arbor.history import Record
from arbor.ids import uuid7


class AuditPosition(models.Func):
    """The number of the running transaction, from which the order of commits follows."""

    function = "audit_position"
    template = "%(function)s()"


class PositionField(models.BigIntegerField):  # type: ignore[type-arg]
    """A position that the default of the database fills in; no INSERT names it or returns it.

    The role of accounts may add records of the installation and read none, so a returned value would be refused.
    """

    #: Django's mark of a column whose value the database alone computes.
    generated = True
    db_returning = False
    expression = AuditPosition()

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"db_default": self.expression, "editable": False, **options})

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        """Describe the column to migrations: a plain one with a default."""
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.BigIntegerField", list(args), options


class AuditAction(models.TextChoices):
    """The kind of an audited act."""

    AGENT_CREATED = "agent.created"
    AGENT_STARTED = "agent.started"
    AGENT_PAUSED = "agent.paused"
    AGENT_RESUMED = "agent.resumed"
    AGENT_STOPPED = "agent.stopped"
    AGENT_DESTROYED = "agent.destroyed"
    AGENT_DORMANT = "agent.dormant"
    TEMPLATE_CHANGED = "template.changed"
    OPERATOR_ACT = "operator.act"
    DENIED = "denied"
    BOUNDARY = "boundary"
    TRUNCATED = "truncated"
    MEMORIES_EXPIRED = "memories.expired"
    MEMORIES_ARCHIVED = "memories.archived"
    MEMORIES_RESTORED = "memories.restored"
    MEMORIES_PURGED = "memories.purged"
    MEMORIES_REVISED = "memories.revised"
    SELF_CHANGED = "self.changed"
    BUFFER_CLEARED = "buffer.cleared"
    TENANT_CREATED = "tenant.created"
    MEMBER_ADDED = "member.added"
    MEMBER_REMOVED = "member.removed"
    SIGNED_IN = "signed_in"
    SIGN_IN_FAILED = "sign_in.failed"
    SIGN_IN_BLOCKED = "sign_in.blocked"
    PASSWORD_CHANGED = "password.changed"  # noqa: S105 (an act)
    SESSIONS_ENDED = "sessions.ended"
    ACCOUNT_DISABLED = "account.disabled"
    ACCOUNT_ENABLED = "account.enabled"
    TOKEN_CREATED = "token.created"  # noqa: S105 (an act)
    TOKEN_REVOKED = "token.revoked"  # noqa: S105 (an act)
    CROSS_TENANT_VIEW = "cross_tenant.view"
    HEALTH_CHANGED = "health.changed"
    BUDGET_LEVEL = "budget.level"
    AUDIT_DELETED = "audit.deleted"
    IDENTITY_ENDORSED = "identity.endorsed"
    IDENTITY_SUSPENDED = "identity.suspended"
    IDENTITY_REVOKED = "identity.revoked"
    IDENTITY_ROTATED = "identity.rotated"
    MESSAGE_REFUSED = "message.refused"
    CAPABILITY_GRANTED = "capability.granted"
    CAPABILITY_DELEGATED = "capability.delegated"
    CAPABILITY_REVOKED = "capability.revoked"
    REQUEST_REFUSED = "request.refused"
    REFLEX = "reflex"
    TRUST_CHANGED = "trust.changed"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_DECIDED = "approval.decided"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_EXECUTED = "approval.executed"
    SELF_ROLLED_BACK = "self.rolled_back"
    SEED_EXPORTED = "seed.exported"
    SEED_IMPORTED = "seed.imported"
    SEED_RESTORED = "seed.restored"
    SEED_FORKED = "seed.forked"
    SEED_MERGED = "seed.merged"
    SEED_REFUSED = "seed.refused"
    DOCUMENT_ADDED = "document.added"
    DOCUMENT_CHANGED = "document.changed"
    DOCUMENT_PUBLISHED = "document.published"
    DOCUMENT_WITHDRAWN = "document.withdrawn"
    DOCUMENT_DELETED = "document.deleted"
    SKILL_CHANGED = "skill.changed"
    SKILL_DELETED = "skill.deleted"
    SUBSCRIPTION_CHANGED = "subscription.changed"
    WORKFLOW_CHANGED = "workflow.changed"
    WORKFLOW_STARTED = "workflow.started"
    WORKFLOW_ENDED = "workflow.ended"
    STEP_DELEGATED = "workflow.step_delegated"
    STEP_DECIDED = "workflow.step_decided"
    AUDIT_EXPORTED = "audit.exported"


class AbstractAuditEvent(models.Model):
    """An audited act."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    at = models.DateTimeField(auto_now_add=True)
    action = models.CharField(max_length=40, choices=AuditAction)
    #: The actor: `user:NAME`, `token:NAME`, `agent:ID`, `cli:NAME`, `system:PART`.
    actor = models.CharField(max_length=200)
    message = models.TextField()
    level = models.CharField(max_length=8, choices=choices_of(AuditLevel), default=AuditLevel.INFO.value)
    detail = models.JSONField(default=dict)
    #: What the act changed: the changed fields with their values before and after it; empty where nothing was changed.
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    #: Filled by the database. Records are sealed in the order of this number, up to `audit_horizon`: see decision 0037.
    position = PositionField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"


class AuditEvent(AbstractAuditEvent, TenantModel):
    """An act in one tenant. The serving and the operations role add and read records; the operations role deletes them by age (`tenants.policies`)."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"
    # The operations role adds visits of superusers, refused acts and deletions by age.
    ops_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    deleted_after: ClassVar[Record] = Record.AUDIT

    #: The agent concerned, if any; no reference, because the record outlives the agent.
    agent_id = models.UUIDField(null=True)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["tenant", "-at"], name="audit_event_by_time"),
            models.Index(fields=["tenant", "agent_id", "-at"], name="audit_event_by_agent"),
            models.Index(fields=["tenant", "position", "id"], name="audit_event_by_position"),
            # Finds an agent's possible breaches among its many acts.
            models.Index(
                fields=["tenant", "agent_id", "-at"],
                name="audit_event_breach",
                condition=models.Q(action__in=[AuditAction.REFLEX, AuditAction.REQUEST_REFUSED]),
            ),
        ]


class PlatformEvent(AbstractAuditEvent):
    """An act on the installation as a whole, such as a view across tenants. Only the operations role sees it."""

    app_privileges: ClassVar[str] = ""
    ops_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    # Sign-ins and changes of accounts are recorded in the transaction of the act.
    accounts_privileges: ClassVar[str] = "INSERT"
    deleted_after: ClassVar[Record] = Record.AUDIT

    class Meta(AbstractAuditEvent.Meta):
        abstract = False
        indexes = [
            models.Index(fields=["position", "id"], name="audit_platform_by_position"),
            models.Index(fields=["action", "id"], name="audit_platform_by_action"),
        ]


class AbstractSeal(models.Model):
    """A link of a chain: digests of what was committed since the seal before, signed (`arbor.audit.chain.SealHeader`)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    #: From 1, without gaps.
    number = models.BigIntegerField()
    at = models.DateTimeField()
    #: The digest of the seal before.
    previous = models.BinaryField()
    #: The position of the last audit record sealed so far, and its id.
    last_position = models.BigIntegerField(default=0)
    last_id = models.UUIDField(null=True)
    events = models.PositiveIntegerField(default=0)
    events_digest = models.BinaryField()
    #: An `arbor.signals.Cursor`: the heartbeats whose end was signaled before it are sealed.
    cursor = models.CharField(max_length=60, blank=True, default="")
    heartbeats = models.PositiveIntegerField(default=0)
    heartbeats_digest = models.BinaryField()
    digest = models.BinaryField()
    #: The number of the System Authority's key that signed.
    key_number = models.PositiveSmallIntegerField()
    signature = models.BinaryField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"seal {self.number}"


class AbstractSealedBlock(models.Model):
    """The ids and digests of the rows under a seal, packed; deleted by age, which leaves the seal as it is."""

    at = models.DateTimeField()
    events = models.BinaryField(default=b"")
    heartbeats = models.BinaryField(default=b"")

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{len(self.events) + len(self.heartbeats)} bytes of digests"


class AuditSeal(AbstractSeal, TenantModel):
    """A link of a tenant's chain. Nobody changes or deletes it; only the operations role adds one."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT"

    class Meta(TenantModel.Meta):
        verbose_name = "seal"
        constraints = [models.UniqueConstraint(fields=["tenant", "number"], name="audit_seal_number")]


class SealedBlock(AbstractSealedBlock, TenantModel):
    """The digests of the rows under a tenant's seal."""

    app_privileges: ClassVar[str] = "SELECT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    deleted_after: ClassVar[Record] = Record.AUDIT

    seal = TenantOneToOne(AuditSeal, primary_key=True, related_name="block")

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "at"], name="audit_block_by_time")]


class PlatformSeal(AbstractSeal):
    """A link of the installation's own chain."""

    app_privileges: ClassVar[str] = ""
    ops_privileges: ClassVar[str] = "SELECT, INSERT"

    class Meta(AbstractSeal.Meta):
        abstract = False
        constraints = [models.UniqueConstraint(fields=["number"], name="audit_platform_seal_number")]


class PlatformBlock(AbstractSealedBlock):
    """The digests of the installation's own records under a seal."""

    app_privileges: ClassVar[str] = ""
    ops_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    deleted_after: ClassVar[Record] = Record.AUDIT

    seal = models.OneToOneField(
        PlatformSeal, primary_key=True, on_delete=models.CASCADE, related_name="block"
    )

    class Meta(AbstractSealedBlock.Meta):
        abstract = False
