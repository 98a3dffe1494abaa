"""Identities of agents: keys, endorsements and requested capabilities, and the keys of the System Authority."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models.agents import Agent
from apps.tenants.fields import TenantForeignKey, TenantOneToOne, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.agents.endorsement import REASON_LENGTH, EndorsementStatus
from arbor.agents.keys import KeyPurpose


class AuthorityKey(models.Model):
    """A key pair of the System Authority, which endorses the agents of this installation; the latest one signs.

    A row is genuine if its private half opens under the master key and belongs to its public half.
    """

    #: A key never changes. Rotating the master key seals the private half anew; retiring the authority's key deletes that half.
    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE (sealed_private_key)"
    ops_privileges: ClassVar[str] = ""

    #: From 1; endorsements name it.
    number = models.PositiveSmallIntegerField(primary_key=True)
    public_key = models.BinaryField()
    #: {v, k, ct, iv, tag}: AES-256-GCM under master key k, bound to the number; empty once the key is retired.
    sealed_private_key = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return f"key {self.number} of the System Authority"


class AgentKey(TenantRow):
    """A key pair of an agent; the private half only as a sealed record, which no page shows."""

    #: A key never changes, and is deleted with its agent; rotating the master key seals the private half anew, and
    #: rotating the agent's keys deletes those that are no longer needed.
    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE (sealed_private_key)"
    ops_privileges: ClassVar[str] = ""

    agent = TenantForeignKey(Agent, related_name="keys")
    #: From 1, by purpose. The hash of the first signing key is the agent's public id.
    number = models.PositiveSmallIntegerField(default=1, db_default=1)
    purpose = models.CharField(
        max_length=8,
        choices=choices_of(KeyPurpose),
        default=KeyPurpose.SIGNING,
        db_default=KeyPurpose.SIGNING.value,
    )
    public_key = models.BinaryField()
    #: {v, k, ct, iv, tag}: AES-256-GCM under master key k, bound to the agent, the tenant and the key
    #: (`arbor.agents.identity`); empty once deleted: of a signing key when the agent's keys are next rotated, of an exchange
    #: key one rotation later.
    sealed_private_key = models.JSONField(default=dict)
    #: By the signing key before, or for an exchange key by a signing key of the chain (`arbor.agents.keys`); empty for the
    #: first signing key.
    previous_signature = models.BinaryField(default=b"")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "purpose", "number"], name="agents_key_of_agent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.purpose} key {self.number} of {self.agent_id}"


class AgentEndorsement(TenantModel):
    """The System Authority's signed statement about an agent's identity (`arbor.agents.endorsement.Endorsement`)."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE"

    agent = TenantOneToOne(Agent, primary_key=True, related_name="endorsement")
    status = models.CharField(
        max_length=12, choices=choices_of(EndorsementStatus), default=EndorsementStatus.ACTIVE
    )
    #: Incremented by each further statement about the agent.
    serial = models.PositiveIntegerField(default=1)
    at = models.DateTimeField()
    reason = models.CharField(max_length=REASON_LENGTH, blank=True, default="")
    #: The number of the System Authority's key that signed.
    authority_number = models.PositiveSmallIntegerField()
    signature = models.BinaryField()

    class Meta(TenantModel.Meta):
        verbose_name = "endorsement"

    def __str__(self) -> str:
        return f"identity {self.status} since {self.at:%Y-%m-%d %H:%M:%S} UTC"


class RequestedCapability(TenantRow):
    """A capability that an agent's template requested for it; it grants nothing."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"

    agent = TenantForeignKey(Agent, related_name="requested_capabilities")
    #: An `arbor://` URI in canonical form.
    resource = models.CharField(max_length=500)
    description = models.TextField(blank=True, default="")
    constraints = models.JSONField(default=dict)

    class Meta(TenantModel.Meta):
        verbose_name = "requested capability"
        verbose_name_plural = "requested capabilities"
        ordering = ["resource", "id"]
        indexes = [models.Index(fields=["tenant", "agent"], name="agents_requested_of_agent")]

    def __str__(self) -> str:
        return self.resource
