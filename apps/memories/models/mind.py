"""Minds, one row per agent with memories, and the installation's records of embedders and maintenance jobs."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from pgvector.django import HalfVectorField, SparseVectorField

from apps.agents.models import Agent
from apps.memories.models.memory import Memory
from apps.tenants.fields import TenantForeignKey, TenantOneToOne
from apps.tenants.models import TenantModel
from arbor.memory.lexical import LEXICAL_DIMENSIONS


class Mind(TenantModel):
    """An agent's memory as a whole. All of its vectors come from one model, so that they can be compared."""

    agent = TenantOneToOne(Agent, primary_key=True, related_name="mind")
    #: The embedder of this agent's vectors, as in `ARBOR_EMBEDDING_MODEL`, and their length.
    embedding_model = models.CharField(max_length=100)
    embedding_dimension = models.PositiveSmallIntegerField()
    #: What was never tended is judged from here.
    created_at = models.DateTimeField(db_default=Now())
    #: When maintenance last looked for what has faded, for what was trivial, and at the quota; empty: never, or at once.
    forgot_at = models.DateTimeField(null=True)
    cleaned_at = models.DateTimeField(null=True)
    counted_at = models.DateTimeField(null=True)
    #: When it was last reclustered; empty: never.
    clustered_at = models.DateTimeField(null=True)
    #: The transaction that made the mind, moved it to another model or deleted memories, set by triggers: what a process
    #: has at hand of it from before is of no use. What else changes is known by `Memory.revision`.
    revision = models.BigIntegerField(db_default=0, editable=False)

    class Meta(TenantModel.Meta):
        indexes = [
            models.Index(fields=["tenant", "forgot_at"], name="memories_mind_forgot"),
            models.Index(fields=["tenant", "cleaned_at"], name="memories_mind_cleaned"),
            models.Index(fields=["tenant", "counted_at"], name="memories_mind_counted"),
            models.Index(fields=["tenant", "clustered_at"], name="memories_mind_clustered"),
        ]

    def __str__(self) -> str:
        return f"{self.embedding_model}, {self.embedding_dimension} dimensions"


class NextEmbedding(TenantModel):
    """A memory's vector by the model that its agent is being moved to. Taken over by all of them at once."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="next_embedding")
    agent = TenantForeignKey(Agent, related_name="+")
    #: As a mind names it, with its dimension: `NAME DIMENSION`.
    embedding_model = models.CharField(max_length=100)
    #: Empty: that model cannot read the text.
    embedding = HalfVectorField(null=True)
    #: The words that fit into the index beside that vector; empty: the same as now.
    lexical = SparseVectorField(dimensions=LEXICAL_DIMENSIONS, null=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "agent"], name="memories_next_by_agent")]

    def __str__(self) -> str:
        return self.embedding_model


class EmbedderFault(models.Model):
    """An embedder that fails, and until when the backlog leaves it alone. One for the installation: not a tenant's."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"
    ops_privileges: ClassVar[str] = "SELECT"

    #: As a mind names it, with its dimension: `NAME DIMENSION`.
    embedding_model = models.CharField(max_length=100, primary_key=True)
    #: How often it failed since it last answered, since when, and why it did the last time.
    failures = models.PositiveIntegerField()
    since = models.DateTimeField()
    retry_at = models.DateTimeField()
    error = models.CharField(max_length=300)

    def __str__(self) -> str:
        return f"{self.embedding_model}: {self.error}"


class JobRun(models.Model):
    """The last run of one job. It belongs to the installation, and has counts only."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE"
    ops_privileges: ClassVar[str] = "SELECT, DELETE"

    #: The task's name, as in `apps.queues.Task`.
    name = models.CharField(max_length=100, primary_key=True)
    #: It should run so often.
    period_s = models.FloatField(default=0)
    #: When it was first expected, when its last run ended, and the seconds that this took.
    first_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField()
    seconds = models.FloatField()
    #: When it last ended without an error; empty: never.
    succeeded_at = models.DateTimeField(null=True)
    #: What it did, by its own count, and the steps that failed in it.
    done = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    #: The kind of error that ended it; empty: none did.
    error = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name = "job"

    def __str__(self) -> str:
        return self.name
