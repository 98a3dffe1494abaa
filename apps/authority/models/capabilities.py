"""Capabilities and their uses as rows."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow
from arbor.agents.capabilities import MAX_URI_LENGTH
from arbor.authority.grants import DEFAULT_DEPTH, MAX_DEPTH
from arbor.ids import uuid7


class CapabilityGrant(TenantModel):
    """A grant of a resource to an agent, signed by the System Authority. Its terms never change; it can only be revoked."""

    #: `signature` and `issuer`: a migration writes unsigned grants, which `sign_all_pending_grants` signs. A rotation of the System
    #: Authority's key signs them anew, with their copies of the grants above.
    app_privileges: ClassVar[str] = (
        "SELECT, INSERT, UPDATE (revoked_at, revoked_by, revoked_reason, issuer, signature, ancestors)"
    )

    #: `arbor.authority.grants.Capability.id` without its prefix.
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    #: None: all agents of the tenant.
    agent = TenantForeignKey(Agent, null=True, related_name="capabilities")
    resource = models.CharField(max_length=MAX_URI_LENGTH)
    #: `arbor.authority.constraints.Constraints` as JSON; None: none.
    constraints = models.JSONField(null=True)
    #: The grant that it was delegated from, and signed copies of all grants above it, the nearest first.
    parent = TenantForeignKey("self", null=True, related_name="delegates")
    ancestors = models.JSONField(null=True)
    #: The levels of delegation that are allowed below it.
    depth = models.PositiveSmallIntegerField(default=DEFAULT_DEPTH, db_default=DEFAULT_DEPTH)
    #: `authority:NUMBER`, the key that signed it, and the signature in hexadecimal digits; empty: not signed yet.
    issuer = models.CharField(max_length=40, default="", db_default="")
    signature = models.CharField(max_length=128, default="", db_default="")
    #: Who granted it, as an actor of the audit log.
    granted_by = models.CharField(max_length=200)
    granted_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.CharField(max_length=200, default="", db_default="")
    revoked_reason = models.CharField(max_length=500, default="", db_default="")

    class Meta(TenantModel.Meta):
        verbose_name = "capability"
        verbose_name_plural = "capabilities"
        ordering = ["resource"]
        indexes = [
            models.Index(
                fields=["tenant", "agent"],
                name="authority_grant_in_force",
                condition=models.Q(revoked_at__isnull=True),
            ),
            models.Index(fields=["tenant", "agent", "-granted_at"], name="authority_grant_by_agent"),
            models.Index(
                fields=["tenant", "parent"],
                name="authority_grant_by_parent",
                condition=models.Q(parent__isnull=False),
            ),
            models.Index(
                fields=["tenant"], name="authority_grant_unsigned", condition=models.Q(signature="")
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(depth__lte=MAX_DEPTH), name="authority_grant_depth"),
            models.CheckConstraint(
                condition=models.Q(parent__isnull=True, ancestors__isnull=True)
                | models.Q(parent__isnull=False, ancestors__isnull=False),
                name="authority_grant_ancestors",
            ),
        ]

    def __str__(self) -> str:
        return self.resource


class CapabilityUse(TenantRow):
    """Counted uses of a limited grant: one by an action, or the share given to a delegate. Written once."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"
    #: Maintenance deletes uses that no longer count.
    ops_privileges: ClassVar[str] = "SELECT, DELETE"

    capability = TenantForeignKey(CapabilityGrant, related_name="uses")
    #: None: given to a delegate.
    heartbeat_id = models.UUIDField(null=True)
    number = models.PositiveIntegerField(default=1)
    at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["tenant", "capability", "at"], name="authority_use_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.number} of {self.capability_id}"
