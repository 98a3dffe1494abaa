"""Saved seeds: whole agents as they were on request, before a change or at their destruction, and uploaded ones."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from apps.tenants.fields import TenantForeignKey, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.seeds.saving import SeedReason


class SavedSeed(TenantRow):
    """A seed that this installation saved; it outlives its agent."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"

    #: No reference: a seed is what remains of a destroyed agent.
    agent_id = models.UUIDField()
    name = models.CharField(max_length=100)
    public_id = models.CharField(max_length=70)
    reason = models.CharField(max_length=12, choices=choices_of(SeedReason))
    #: The digest of the agent's state, 64 hexadecimal digits.
    digest = models.CharField(max_length=64)
    bytes = models.BigIntegerField()
    #: The number of rows by section.
    rows = models.JSONField(default=dict)
    actor = models.CharField(max_length=200)
    #: The time of the capture, and the time when the seed was saved; its lifetime counts from the latter.
    at = models.DateTimeField()
    saved_at = models.DateTimeField(default=timezone.now, db_default=Now())

    class Meta(TenantModel.Meta):
        verbose_name = "seed"
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["tenant", "agent_id", "-at"], name="fleet_seed_by_agent"),
            models.Index(fields=["tenant", "-at"], name="fleet_seed_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})"


class SavedSeedPart(TenantModel):
    """A part of a saved seed's file, a megabyte at most."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    ops_privileges: ClassVar[str] = ""

    pk = models.CompositePrimaryKey("tenant_id", "seed_id", "number")
    seed = TenantForeignKey(SavedSeed, related_name="parts")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta(TenantModel.Meta):
        verbose_name = "part of a seed"
        verbose_name_plural = "parts of seeds"

    def __str__(self) -> str:
        return f"part {self.number}"
