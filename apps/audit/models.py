"""The audit log: who did what, written once, never changed, deleted only by age."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.tenants.models import TenantModel
from arbor.history import Record
from arbor.ids import uuid7


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
    detail = models.JSONField(default=dict)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"


class AuditEvent(AbstractAuditEvent, TenantModel):
    """An act in one tenant. The serving roles may add and read, and delete by age (`tenants.protection`)."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"
    # The operations role adds the visits of superusers.
    ops_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    deleted_after: ClassVar[Record] = Record.AUDIT

    #: The agent concerned, if any; no reference, because the record outlives the agent.
    agent_id = models.UUIDField(null=True)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["tenant", "-at"], name="audit_event_by_time"),
            models.Index(fields=["tenant", "agent_id", "-at"], name="audit_event_by_agent"),
        ]


class PlatformEvent(AbstractAuditEvent):
    """An act on the installation as a whole, such as a view across tenants. Only the operations role sees it."""

    app_privileges: ClassVar[str] = ""
    ops_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    # Sign-ins and changes of accounts are recorded in the transaction of the act.
    accounts_privileges: ClassVar[str] = "INSERT"
    deleted_after: ClassVar[Record] = Record.AUDIT
