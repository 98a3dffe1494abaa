"""Pins: memories that a person exempts from decay and forgetting."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.memories.models.memory import Memory
from apps.tenants.fields import TenantForeignKey, TenantOneToOne, choices_of
from apps.tenants.models import TenantModel
from arbor.memory.values import Retention


class Pin(TenantModel):
    """The pin of a memory, with the values that the memory gets back when it is unpinned.

    A separate table, because recall scans all memories and few of them are pinned.
    """

    memory = TenantOneToOne(Memory, primary_key=True, related_name="pin")
    agent = TenantForeignKey(Agent, related_name="pins")
    pinned_at = models.DateTimeField(auto_now_add=True)
    #: Who pinned the memory: `user:NAME`, `token:NAME`, `cli:NAME`.
    pinned_by = models.CharField(max_length=200)
    #: The values of the memory before: `Memory.decay_rate`, `retention`, `expires_at`.
    decay_rate = models.FloatField()
    retention = models.CharField(max_length=9, choices=choices_of(Retention))
    expires_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.CheckConstraint(condition=models.Q(decay_rate__gte=0), name="memories_pin_decay_rate")
        ]
        indexes = [models.Index(fields=["tenant", "agent", "-pinned_at"], name="memories_pin_of_agent")]

    def __str__(self) -> str:
        return f"by {self.pinned_by}"
