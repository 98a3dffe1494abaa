"""The calibration of an agent's proposals as rows."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey, choices_of, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.selves.calibration import Calibration
from arbor.selves.proposals import ProposalKind


class ProposalCalibration(TenantRow):
    """The share of an agent's accepted proposals of one kind that proved right; computed by maintenance."""

    agent = TenantForeignKey(Agent, related_name="calibrations")
    kind = models.CharField(max_length=12, choices=choices_of(ProposalKind))
    #: Among the latest proposals: accepted ones that proved right and wrong, and rejected ones.
    right = models.PositiveSmallIntegerField(default=0)
    wrong = models.PositiveSmallIntegerField(default=0)
    rejected = models.PositiveSmallIntegerField(default=0)
    #: The confidence from which the kind is promoted, 0 to 1; null: the kind has no threshold.
    threshold = models.FloatField(null=True)
    computed_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        db_table = "selves_calibration"
        verbose_name = "calibration"
        ordering = ["kind"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "kind"], name="selves_calibration_once"),
            models.CheckConstraint(
                condition=models.Q(threshold__isnull=True) | is_share("threshold"),
                name="selves_calibration_threshold",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.right} right, {self.wrong} wrong"

    @property
    def counts(self) -> Calibration:
        """Return the counts as a value."""
        return Calibration(right=self.right, wrong=self.wrong, rejected=self.rejected)
