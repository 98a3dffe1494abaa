"""The knowledge graph: typed, directed relations between what an agent remembers, thinks, believes and wants."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel
from arbor.ids import uuid7
from arbor.memory.relations import GraphNodeKind


class Edge(TenantModel):
    """A relation within one agent. Its ends are of several kinds, so that the service checks that they exist."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="edges")
    source_kind = models.CharField(max_length=8, choices=[(k.value, k.value) for k in GraphNodeKind])
    source_id = models.UUIDField()
    target_kind = models.CharField(max_length=8, choices=[(k.value, k.value) for k in GraphNodeKind])
    target_id = models.UUIDField()
    #: `arbor.memory.relations.Relation`.
    relation = models.CharField(max_length=24)
    #: How sure, 0 to 1.
    weight = models.FloatField(default=1.0)
    #: Why: what whoever drew it said about it.
    note = models.TextField(blank=True)
    #: Who drew it: `heartbeat:ID`, `operator`, `maintenance`.
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
            models.CheckConstraint(
                condition=models.Q(weight__gte=0) & models.Q(weight__lte=1), name="memories_edge_weight"
            ),
        ]
        indexes = [models.Index(fields=["tenant", "agent", "target_id"], name="memories_edge_target")]

    def __str__(self) -> str:
        return self.relation
