"""Who an agent takes itself to be, and what it holds to be so.

Nothing enters the self without review: rows come from an agent's birth or from a person, never from maintenance or
from what a model said. A contract of the imports holds it: neither heartbeats nor memories nor workers reach the
services that write here.
"""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel
from arbor.ids import uuid7
from arbor.selves.values import AspectKind, BeliefCategory, Standing

_SHARE = models.Q(stability__gte=0) & models.Q(stability__lte=1)


class Belief(TenantModel):
    """One thing an agent holds to be so."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="beliefs")
    category = models.CharField(max_length=16, choices=[(c.value, c.value) for c in BeliefCategory])
    statement = models.TextField()
    #: SHA-256 of the normalised statement: an agent holds it once.
    statement_hash = models.BinaryField(max_length=32)
    #: How sure the agent is of it, and how much it would take to change its mind; 0 to 1.
    confidence = models.FloatField()
    stability = models.FloatField()
    status = models.CharField(
        max_length=10, choices=[(s.value, s.value) for s in Standing], default=Standing.HELD
    )
    #: Where it comes from: `template:NAME`, `operator`.
    source = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "statement_hash"], name="selves_belief_once"),
            models.CheckConstraint(
                condition=models.Q(confidence__gte=0) & models.Q(confidence__lte=1),
                name="selves_belief_confidence",
            ),
            models.CheckConstraint(condition=_SHARE, name="selves_belief_stability"),
        ]

    def __str__(self) -> str:
        return self.statement[:80]


class IdentityAspect(TenantModel):
    """One side of who an agent takes itself to be."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="aspects")
    kind = models.CharField(max_length=24, choices=[(k.value, k.value) for k in AspectKind])
    content = models.TextField()
    #: SHA-256 of the normalised content: an agent has it once.
    content_hash = models.BinaryField(max_length=32)
    #: How much it would take to change it, 0 to 1.
    stability = models.FloatField()
    status = models.CharField(
        max_length=10, choices=[(s.value, s.value) for s in Standing], default=Standing.HELD
    )
    source = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "content_hash"], name="selves_identityaspect_once"
            ),
            models.CheckConstraint(condition=_SHARE, name="selves_identityaspect_stability"),
        ]

    def __str__(self) -> str:
        return self.content[:80]
