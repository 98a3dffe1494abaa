"""Trust tiers of agents as rows: scores with their parts, and changes."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey, TenantOneToOne, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.agents.template import TrustTier
from arbor.authority.trust_tiers import TierStatus


class TrustScore(TenantModel):
    """An agent's trust tier, and the score that moves it; computed by maintenance."""

    agent = TenantOneToOne(Agent, primary_key=True, related_name="trust_score")
    tier = models.CharField(max_length=16, choices=choices_of(TrustTier))
    #: Since when the agent has the tier.
    since = models.DateTimeField()
    #: Whether a person set the tier.
    by_person = models.BooleanField(default=False, db_default=False)
    #: 0 to 100; null before the first computation.
    score = models.FloatField(null=True)
    #: `arbor.authority.trust_tiers.ScoredPart` as JSON.
    parts = models.JSONField(default=list, db_default=[])
    #: As in `arbor.authority.trust_tiers.TierStatus`.
    breached_at = models.DateTimeField(null=True)
    above_since = models.DateTimeField(null=True)
    below_since = models.DateTimeField(null=True)
    #: When the score was last computed; the next one looks for breaches after this time.
    computed_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = "trust score"
        indexes = [models.Index(fields=["tenant", "computed_at"], name="authority_score_by_time")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(score__isnull=True) | models.Q(score__gte=0, score__lte=100),
                name="authority_score_range",
            ),
        ]

    def __str__(self) -> str:
        return self.tier if self.score is None else f"{self.tier}, {self.score:g} of 100"

    @property
    def status(self) -> TierStatus:
        """Return the tier with the times that decide about its next change."""
        return TierStatus(
            tier=TrustTier(self.tier),
            since=self.since,
            by_person=self.by_person,
            breached_at=self.breached_at,
            above_since=self.above_since,
            below_since=self.below_since,
        )


class TierChange(TenantRow):
    """A change of an agent's trust tier. Written once."""

    app_privileges: ClassVar[str] = "SELECT, INSERT"

    agent = TenantForeignKey(Agent, related_name="tier_changes")
    before = models.CharField(max_length=16, choices=choices_of(TrustTier))
    after = models.CharField(max_length=16, choices=choices_of(TrustTier))
    #: The score at the change, 0 to 100; null where none was computed.
    score = models.FloatField(null=True)
    #: `system:trust`, `user:NAME`, `cli:NAME`, `token:NAME`.
    decided_by = models.CharField(max_length=200)
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        verbose_name = "tier change"
        ordering = ["-at"]
        indexes = [models.Index(fields=["tenant", "agent", "-at"], name="authority_tier_by_agent")]

    def __str__(self) -> str:
        return f"{self.before} to {self.after}"
