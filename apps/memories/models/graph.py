"""The knowledge graph of an agent: concepts, and typed relations of memories, concepts, beliefs, aspects and goals."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.memories.models.memory import Memory
from apps.tenants.fields import OnDelete, TenantForeignKey, choices_of, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.memory.relations import GraphNodeKind


class Edge(TenantRow):
    """A relation between two nodes of one agent's graph.

    The nodes are rows of several tables, so no foreign key can check that they exist; `services.graph.relations` does.
    """

    agent = TenantForeignKey(Agent, related_name="edges")
    source_kind = models.CharField(max_length=8, choices=choices_of(GraphNodeKind))
    source_id = models.UUIDField()
    target_kind = models.CharField(max_length=8, choices=choices_of(GraphNodeKind))
    target_id = models.UUIDField()
    #: `arbor.memory.relations.Relation`.
    relation = models.CharField(max_length=24)
    #: The confidence, 0 to 1.
    weight = models.FloatField(default=1.0)
    #: The reason, in the words of whoever created the relation.
    note = models.TextField(blank=True)
    #: The author of the relation, or the source of the memory that it was created with: `heartbeat:ID`, `cli:NAME`, `proposal:ID`.
    origin = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "relation"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "source_id", "target_id", "relation"], name="memories_edge_once"
            ),
            models.CheckConstraint(
                condition=~models.Q(source_id=models.F("target_id")), name="memories_edge_not_self"
            ),
            models.CheckConstraint(condition=is_share("weight"), name="memories_edge_weight"),
        ]
        indexes = [
            models.Index(fields=["tenant", "agent", "target_id"], name="memories_edge_target"),
            # Each heartbeat looks for its agent's contradictions, which are few among all relations.
            models.Index(
                fields=["tenant", "agent", "-created_at"],
                name="memories_edge_contradiction",
                condition=models.Q(relation="contradicts"),
            ),
        ]

    def __str__(self) -> str:
        return self.relation


class Concept(TenantRow):
    """An abstract idea of one agent, with the broader ones above it."""

    agent = TenantForeignKey(Agent, related_name="concepts")
    name = models.CharField(max_length=100)
    #: The name as it is compared, with case and white space folded (`arbor.memory.concepts.concept_key`).
    key = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    parent = TenantForeignKey(
        "self", null=True, blank=True, deleting=OnDelete.SET_NULL, related_name="children"
    )
    #: Ids of all broader concepts, the broadest first, so that no query is recursive.
    ancestors = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "key"], name="memories_concept_once"),
            models.CheckConstraint(
                condition=models.Q(parent__isnull=True) | ~models.Q(parent=models.F("id")),
                name="memories_concept_not_own_parent",
            ),
        ]
        # Few concepts have a broader one.
        indexes = [
            models.Index(
                fields=["tenant", "parent"],
                name="memories_concept_narrower",
                condition=models.Q(parent__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return self.name


class MemoryConcept(TenantModel):
    """A memory that is a case of a concept."""

    pk = models.CompositePrimaryKey("tenant_id", "concept_id", "memory_id")
    concept = TenantForeignKey(Concept, related_name="memories")
    memory = TenantForeignKey(Memory, related_name="concepts")
    #: The degree to which the memory is a case of the concept, 0 to 1.
    strength = models.FloatField(default=1.0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.CheckConstraint(condition=is_share("strength"), name="memories_memoryconcept_strength")
        ]
        indexes = [models.Index(fields=["tenant", "memory"], name="memories_concept_by_memory")]

    def __str__(self) -> str:
        return f"{self.strength:.2f}"
