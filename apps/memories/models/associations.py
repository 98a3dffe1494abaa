"""Neighborhoods, maintenance flags and activations of memories."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.memories.models.memory import Memory
from apps.tenants.fields import TenantForeignKey, TenantOneToOne
from apps.tenants.models import TenantModel


class Upkeep(TenantModel):
    """A memory's precomputed neighborhood and its maintenance flags: written here, so that the memory's row stays cold."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="upkeep")
    agent = TenantForeignKey(Agent, related_name="+")
    #: {memory id: weight}, the 20 closest; weights from 0 to 1.8.
    neighbors = models.JSONField(null=True)
    computed_at = models.DateTimeField(null=True)
    #: The neighborhood is missing, or something it was computed from has changed.
    stale = models.BooleanField(default=True)
    #: Not yet assigned to clusters.
    unclustered = models.BooleanField(default=True)
    #: Concepts not yet taken from it.
    unextracted = models.BooleanField(default=True)
    #: Waits for a model's view of its importance; only where one is configured.
    unweighed = models.BooleanField(default=False)
    #: Replies to maintenance calls about its concepts, and about its weight, that left it out; after some, the rule decides.
    extract_tries = models.PositiveSmallIntegerField(db_default=0)
    weigh_tries = models.PositiveSmallIntegerField(db_default=0)

    class Meta(TenantModel.Meta):
        verbose_name = "memory in upkeep"
        verbose_name_plural = "memories in upkeep"
        indexes = [
            models.Index(
                fields=["tenant", "agent"],
                name=f"memories_upkeep_{chore}",
                condition=models.Q(**{chore: True}),
            )
            for chore in ("stale", "unclustered", "unextracted", "unweighed")
        ]

    def __str__(self) -> str:
        return f"{len(self.neighbors or {})} neighbors"


class Activation(TenantModel):
    """The activation of a memory: a cache in an unlogged table, so a crash of the database clears it."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="activation")
    agent = TenantForeignKey(Agent, related_name="+")
    #: From 0 to 1, at `at`; it fades from then on (`arbor.memory.activation`).
    level = models.FloatField()
    at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        # Without `at`, so that an update of level and time writes no index; an agent's rows are few, and sorted when read.
        indexes = [models.Index(fields=["tenant", "agent"], name="memories_activation_of_agent")]

    def __str__(self) -> str:
        return f"{self.level:.2f}"
