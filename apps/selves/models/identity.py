"""Aspects of identities, preferences and beliefs."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.tenants.fields import TenantForeignKey, choices_of, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.selves.values import DEFAULT_STRENGTH, AspectKind, BeliefCategory, BeliefStatus


class IdentityAspect(TenantRow):
    """An aspect of an agent's identity. Its traits, values and capabilities are aspects too: no other table has them."""

    agent = TenantForeignKey(Agent, related_name="aspects")
    kind = models.CharField(max_length=24, choices=choices_of(AspectKind))
    content = models.TextField()
    #: SHA-256 of the normalized content, which an agent has once of each kind.
    content_hash = models.BinaryField(max_length=32)
    #: By kind the strength of a trait, the importance of a value, the proficiency of a capability, or the resonance of
    #: another aspect; 0 to 1.
    strength = models.FloatField(default=DEFAULT_STRENGTH, db_default=DEFAULT_STRENGTH)
    #: The aspect's resistance to change, 0 to 1.
    stability = models.FloatField()
    status = models.CharField(max_length=10, choices=choices_of(BeliefStatus), default=BeliefStatus.HELD)
    source = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name = "aspect"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "kind", "content_hash"], name="selves_identityaspect_once"
            ),
            models.CheckConstraint(condition=is_share("stability"), name="selves_identityaspect_stability"),
            models.CheckConstraint(condition=is_share("strength"), name="selves_identityaspect_strength"),
        ]

    def __str__(self) -> str:
        return self.content[:80]


class Preference(TenantRow):
    """A preference of an agent."""

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


class Belief(TenantRow):
    """A belief of an agent."""

    agent = TenantForeignKey(Agent, related_name="beliefs")
    category = models.CharField(max_length=16, choices=choices_of(BeliefCategory))
    statement = models.TextField()
    #: SHA-256 of the normalized statement, which an agent has once.
    statement_hash = models.BinaryField(max_length=32)
    #: The agent's certainty, and the belief's resistance to evidence; 0 to 1.
    confidence = models.FloatField()
    stability = models.FloatField()
    status = models.CharField(max_length=10, choices=choices_of(BeliefStatus), default=BeliefStatus.HELD)
    #: The origin, such as `template:NAME`, `proposal:ID` or `operator`.
    source = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    #: The time of the last test against evidence (seed 003, 3.5).
    tested_at = models.DateTimeField(null=True)
    #: `arbor.selves.memory_filters.MemoryFilter` as JSON: [{effect, patterns, types}].
    filters = models.JSONField(default=list, db_default=[], blank=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "statement_hash"], name="selves_belief_once"),
            models.CheckConstraint(condition=is_share("confidence"), name="selves_belief_confidence"),
            models.CheckConstraint(condition=is_share("stability"), name="selves_belief_stability"),
        ]

    def __str__(self) -> str:
        return self.statement[:80]


class BeliefEvidence(TenantRow):
    """A memory that supports or contradicts a belief."""

    belief = TenantForeignKey(Belief, related_name="evidence")
    memory = TenantForeignKey(Memory, related_name="+")
    #: Whether the memory supports the belief.
    supports = models.BooleanField()
    #: The strength of the evidence, 0 to 1.
    strength = models.FloatField(default=1.0)
    #: The time by the clock of the heartbeat that recorded it; compared with `Belief.tested_at`.
    at = models.DateTimeField(default=timezone.now)

    class Meta(TenantModel.Meta):
        verbose_name = "evidence"
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "belief", "memory"], name="selves_evidence_once"),
            models.CheckConstraint(condition=is_share("strength"), name="selves_evidence_strength"),
        ]
        indexes = [models.Index(fields=["tenant", "memory"], name="selves_evidence_by_memory")]

    def __str__(self) -> str:
        return f"{'for' if self.supports else 'against'} {self.belief_id}"
