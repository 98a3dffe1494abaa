"""Minds, and the installation's records of embedders and maintenance jobs."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now
from pgvector.django import HalfVectorField, SparseVectorField

from apps.agents.models import Agent
from apps.memories.models.memory import Memory
from apps.tenants.fields import TenantForeignKey, TenantOneToOne
from apps.tenants.models import TenantModel
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS


class Mind(TenantModel):
    """An agent's memories as a whole; an agent without memories has none. All vectors come from one model, so that they can be compared."""

    agent = TenantOneToOne(Agent, primary_key=True, related_name="mind")
    #: The embedder of this agent's vectors, as in `ARBOR_EMBEDDING_MODEL`, and their length.
    embedding_model = models.CharField(max_length=100)
    embedding_dimension = models.PositiveSmallIntegerField()
    #: The time from which forgetting that never ran counts as late.
    created_at = models.DateTimeField(db_default=Now())
    #: The last runs of forgetting: of faded memories, of trivial ones, and for the quotas; empty: due now.
    forgot_at = models.DateTimeField(null=True)
    cleaned_at = models.DateTimeField(null=True)
    counted_at = models.DateTimeField(null=True)
    #: The last reclustering; empty: never.
    clustered_at = models.DateTimeField(null=True)
    #: The last transaction that created the mind, moved it to another model or deleted memories, set by triggers: images of the
    #: mind from before are invalid. Mind caches find other changes by `Memory.revision`.
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
    """A memory's vector by the embedder that its mind is moving to. All memories of a mind switch at once."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="next_embedding")
    agent = TenantForeignKey(Agent, related_name="+")
    #: `NAME DIMENSION`
    embedding_model = models.CharField(max_length=100)
    #: Empty if the model cannot embed the text.
    embedding = HalfVectorField(null=True)
    #: The weights of the terms that fit into the index beside the new vector; empty: unchanged.
    lexical = SparseVectorField(dimensions=LEXICAL_DIMENSIONS, null=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "agent"], name="memories_next_by_agent")]

    def __str__(self) -> str:
        return self.embedding_model


class EmbedderFault(models.Model):
    """A failing embedder, and the time of the next try. A row of the installation, not of a tenant."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"
    ops_privileges: ClassVar[str] = "SELECT"

    #: `NAME DIMENSION`
    embedding_model = models.CharField(max_length=100, primary_key=True)
    #: The number of failures since the last success, and the time of the first one.
    failures = models.PositiveIntegerField()
    since = models.DateTimeField()
    retry_at = models.DateTimeField()
    #: The class of the last error.
    error = models.CharField(max_length=300)

    def __str__(self) -> str:
        return f"{self.embedding_model}: {self.error}"


class JobRun(models.Model):
    """The last run of one job, for the whole installation, with counts only."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE"
    ops_privileges: ClassVar[str] = "SELECT, DELETE"

    #: The task's name, as in `apps.queues.Task`.
    name = models.CharField(max_length=100, primary_key=True)
    #: The expected time between two runs, in seconds.
    period_s = models.FloatField(default=0)
    #: When a run was first expected, the end of the last run, and its duration in seconds.
    first_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField()
    seconds = models.FloatField()
    #: The end of the last run without an error; empty: none.
    succeeded_at = models.DateTimeField(null=True)
    #: Units of work done, as the job counts them, and failed steps.
    done = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    #: The class of the error that ended the run; empty for none.
    error = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name = "job"

    def __str__(self) -> str:
        return self.name

    @property
    def has_run(self) -> bool:
        """Return whether a run has ended: until then, `ended_at` is the time when the first run was expected."""
        return self.succeeded_at is not None or bool(self.error)
