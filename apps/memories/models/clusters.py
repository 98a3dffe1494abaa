"""Clusters of memories that are near each other in meaning, their members and relations."""

from __future__ import annotations

from django.db import models
from pgvector.django import HalfVectorField

from apps.agents.models import Agent
from apps.memories.models.memory import Memory
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow


class Cluster(TenantRow):
    """A cluster of memories: center, keywords, emotional signature and importance."""

    agent = TenantForeignKey(Agent, related_name="clusters")
    #: The first keywords, or the name that somebody gave.
    name = models.CharField(max_length=200)
    #: The normalized mean of the members that belong to no other cluster more strongly; empty without vectors.
    centroid = HalfVectorField(null=True)
    #: The most characteristic words, the heaviest first.
    keywords = models.JSONField(default=list)
    #: The emotional signature: mean valence, -1 to 1, and mean strength of feeling, 0 to 1.
    emotional_valence = models.FloatField(default=0.0)
    emotional_intensity = models.FloatField(default=0.0)
    #: From 0 to 1, computed from the importance of the members.
    importance = models.FloatField(default=0.0)
    size = models.PositiveIntegerField(default=0)
    #: Whether members have changed since center and keywords were computed.
    stale = models.BooleanField(default=True)
    #: The number of recalls that found members, and the time of the last one.
    activations = models.PositiveIntegerField(default=0)
    activated_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name = "cluster"
        indexes = [
            models.Index(fields=["tenant", "agent"], name="memories_cluster_by_agent"),
            models.Index(
                fields=["tenant", "agent"], name="memories_cluster_stale", condition=models.Q(stale=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ClusterMember(TenantModel):
    """The membership of a memory in a cluster, with its strength."""

    pk = models.CompositePrimaryKey("tenant_id", "cluster_id", "memory_id")
    cluster = TenantForeignKey(Cluster, related_name="members")
    memory = TenantForeignKey(Memory, related_name="clusters")
    #: The cosine between memory and center at the time of the assignment, 0 to 1.
    strength = models.FloatField()
    added_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "cluster member"
        indexes = [models.Index(fields=["tenant", "memory"], name="memories_member_by_memory")]

    def __str__(self) -> str:
        return f"{self.strength:.2f}"


class ClusterRelation(TenantModel):
    """The relation of one cluster to another."""

    pk = models.CompositePrimaryKey("tenant_id", "source_id", "target_id", "relation")
    source = TenantForeignKey(Cluster, related_name="relations_out")
    target = TenantForeignKey(Cluster, related_name="relations_in")
    #: `arbor.memory.clusters.links.ClusterLink`.
    relation = models.CharField(max_length=24)
    #: From 0 to 1.
    strength = models.FloatField()
    computed_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name = "relation of clusters"
        verbose_name_plural = "relations of clusters"
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(source=models.F("target")), name="memories_clusterrelation_not_self"
            )
        ]
        indexes = [models.Index(fields=["tenant", "target"], name="memories_clusterrelation_to")]

    def __str__(self) -> str:
        return self.relation
