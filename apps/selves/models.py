"""Who an agent takes itself to be, and what it holds to be so.

Nothing enters the self without review: beliefs, aspects and preferences come from an agent's birth, from a person, or
from a proposal that the agent's own heartbeat accepted, within limits; never from maintenance. A contract of the imports
holds it: memories and workers reach nothing that writes here, heartbeats only the proposals.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.memories.models import Memory
from apps.tenants.fields import OnDelete, TenantForeignKey
from apps.tenants.models import TenantModel
from arbor.ids import uuid7
from arbor.selves.boundaries import BoundaryResponse, BoundaryType
from arbor.selves.proposals import ProposalKind, ProposalStatus
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
    #: When it was last held against what happened (seed 003, 3.5).
    tested_at = models.DateTimeField(null=True)

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


class BeliefEvidence(TenantModel):
    """A memory that speaks for a belief or against it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    belief = TenantForeignKey(Belief, related_name="evidence")
    memory = TenantForeignKey(Memory, related_name="+")
    #: Whether it speaks for the belief.
    supports = models.BooleanField()
    #: How much it says, 0 to 1.
    strength = models.FloatField(default=1.0)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "belief evidence"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "belief", "memory"], name="selves_evidence_once"),
            models.CheckConstraint(
                condition=models.Q(strength__gte=0) & models.Q(strength__lte=1),
                name="selves_evidence_strength",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "memory"], name="selves_evidence_by_memory")]

    def __str__(self) -> str:
        return f"{'for' if self.supports else 'against'} {self.belief_id}"


class Boundary(TenantModel):
    """A boundary of an agent's own: beside those that every agent has, or, under the name of one, instead of it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="boundaries")
    name = models.CharField(max_length=60)
    description = models.TextField(blank=True)
    type = models.CharField(max_length=10, choices=[(t.value, t.value) for t in BoundaryType])
    #: Words and phrases that call it up, on word borders: [text].
    patterns = models.JSONField(default=list)
    #: Sentences; what means the same calls it up: [text], and their vectors with the model that made them.
    examples = models.JSONField(default=list)
    vectors = models.JSONField(default=dict)
    response = models.CharField(max_length=10, choices=[(r.value, r.value) for r in BoundaryResponse])
    #: 0 is hard, 1 negotiable; and how much it matters, 0 to 1.
    flexibility = models.FloatField(default=0.0)
    importance = models.FloatField(default=0.5)
    enabled = models.BooleanField(default=True)
    source = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "boundaries"
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "name"], name="selves_boundary_name"),
            models.CheckConstraint(
                condition=models.Q(flexibility__gte=0) & models.Q(flexibility__lte=1),
                name="selves_boundary_flexibility",
            ),
            models.CheckConstraint(
                condition=models.Q(importance__gte=0) & models.Q(importance__lte=1),
                name="selves_boundary_importance",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PeerModel(TenantModel):
    """What an agent thinks of somebody it deals with: another agent of its tenant, or a person."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="peers")
    #: The other, if it is an agent; else only the name.
    peer = TenantForeignKey(Agent, deleting=OnDelete.SET_NULL, null=True, blank=True, related_name="+")
    name = models.CharField(max_length=200)
    #: 0 to 1.
    competence = models.FloatField(default=0.5)
    reliability = models.FloatField(default=0.5)
    #: What the other cares for: [text].
    interests = models.JSONField(default=list)
    interactions = models.PositiveIntegerField(default=0)
    #: Interactions that went well.
    successes = models.PositiveIntegerField(default=0)
    #: The agent's heartbeat number at the last interaction, and when it was.
    last_tick = models.BigIntegerField(default=0)
    last_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "name"], name="selves_peer_name"),
            models.CheckConstraint(
                condition=models.Q(successes__lte=models.F("interactions")), name="selves_peer_successes"
            ),
        ]
        # How an agent stands with the others: what they think of it.
        indexes = [
            models.Index(
                fields=["tenant", "peer"], name="selves_peer_by_peer", condition=models.Q(peer__isnull=False)
            )
        ]

    def __str__(self) -> str:
        return self.name


class Experience(TenantModel):
    """An action, what came of it, and what it taught (seed 003, 3.4)."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="experiences")
    #: The heartbeat, and its number.
    heartbeat_id = models.UUIDField()
    tick = models.BigIntegerField()
    action = models.CharField(max_length=40)
    #: What was tried.
    about = models.TextField(blank=True)
    outcome = models.CharField(max_length=10)
    lesson = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["-at"]
        indexes = [models.Index(fields=["tenant", "agent", "-tick"], name="selves_experience_by_tick")]

    def __str__(self) -> str:
        return f"{self.action}: {self.outcome}"


class Proposal(TenantModel):
    """A change to the self that waits for a decision; only a heartbeat of the agent or a person decides."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="proposals")
    kind = models.CharField(max_length=12, choices=[(k.value, k.value) for k in ProposalKind])
    content = models.TextField()
    #: What accepting it changes: {"aspect": kind} for identity, {"belief": id, "confidence": …} for a belief, ….
    change = models.JSONField(default=dict)
    #: 0 to 1.
    confidence = models.FloatField()
    #: Ids of the memories it rests on.
    evidence = models.JSONField(default=list)
    #: `heartbeat:ID`, `consolidation`, `operator`.
    source = models.CharField(max_length=200)
    status = models.CharField(
        max_length=8, choices=[(s.value, s.value) for s in ProposalStatus], default=ProposalStatus.PENDING
    )
    #: How often it was put off.
    deferrals = models.PositiveSmallIntegerField(default=0)
    reason = models.TextField(blank=True)
    #: Who decided: `heartbeat:ID`, `user:NAME`, `cli:NAME`.
    decided_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering = ["-created_at"]
        indexes = [
            models.Index(
                fields=["tenant", "agent"],
                name="selves_proposal_pending",
                condition=models.Q(status="pending"),
            ),
            models.Index(fields=["tenant", "agent", "-created_at"], name="selves_proposal_by_agent"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(confidence__gte=0) & models.Q(confidence__lte=1),
                name="selves_proposal_confidence",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.content[:60]}"


class SelfChange(TenantModel):
    """One change to an agent's self: what it was, what it is, who decided. Written once."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="+")
    #: `belief`, `aspect`, `preference`, and which.
    what = models.CharField(max_length=12)
    target_id = models.UUIDField()
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    proposal = TenantForeignKey(Proposal, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    decided_by = models.CharField(max_length=200)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["-at"]
        indexes = [models.Index(fields=["tenant", "agent", "-at"], name="selves_change_by_agent")]

    def __str__(self) -> str:
        return f"{self.what} changed by {self.decided_by}"


class Preference(TenantModel):
    """A way an agent wants to behave."""

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
