"""Aspects of identities, and preferences."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.selves.models.shares import share
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel
from arbor.ids import uuid7
from arbor.selves.values import AspectKind, Standing


class IdentityAspect(TenantModel):
    """An aspect of an agent's identity."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="aspects")
    kind = models.CharField(max_length=24, choices=[(k.value, k.value) for k in AspectKind])
    content = models.TextField()
    #: SHA-256 of the normalised content: an agent has it once.
    content_hash = models.BinaryField(max_length=32)
    #: The aspect's resistance to change, 0 to 1.
    stability = models.FloatField()
    status = models.CharField(
        max_length=10, choices=[(s.value, s.value) for s in Standing], default=Standing.HELD
    )
    source = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name = "aspect"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "content_hash"], name="selves_identityaspect_once"
            ),
            models.CheckConstraint(condition=share("stability"), name="selves_identityaspect_stability"),
        ]

    def __str__(self) -> str:
        return self.content[:80]


class Preference(TenantModel):
    """A preference of an agent."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="preferences")
    key = models.CharField(max_length=60)
    value = models.CharField(max_length=300)
    source = models.CharField(max_length=200, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "key"], name="selves_preference_key")
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"
