"""Memories, with the data of a memory that change often: accesses, practice, neighborhood, activation; term counts and cached vectors.

Data that change often have their own tables, so that the wide row of the memory is seldom written.
"""

from __future__ import annotations

from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from apps.agents.models import Agent
from apps.memories.models.episodes import Episode
from apps.tenants.fields import IntegerArray, OnDelete, TenantForeignKey, TenantOneToOne, choices_of, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS
from arbor.memory.values import MemoryStatus, MemoryType, Retention


class Memory(TenantRow):
    """One remembered thing."""

    agent = TenantForeignKey(Agent, related_name="memories")
    type = models.CharField(max_length=16, choices=choices_of(MemoryType))
    status = models.CharField(max_length=16, choices=choices_of(MemoryStatus), default=MemoryStatus.ACTIVE)
    content = models.TextField()
    #: SHA-256 of the normalized content.
    content_hash = models.BinaryField(max_length=32)
    importance = models.FloatField(default=0.5)
    #: The rate per day at which the relevance falls (`arbor.memory.forgetting.relevance`).
    decay_rate = models.FloatField(default=0.01)
    trust = models.FloatField(default=1.0)
    emotional_valence = models.FloatField(default=0.0)
    #: The session groups memories of one conversation or stretch of time; the position orders them. Equal memories outside
    #: of sessions have different positions, so that the same text can be stored at different times.
    session = models.CharField(max_length=100, blank=True)
    position = models.IntegerField(default=0)
    #: The speaker: `user`, `assistant`, `system`, `tool_result`, or a name; empty for the agent's own thoughts.
    role = models.CharField(max_length=100, blank=True)
    #: The origin, such as `heartbeat:ID`, `chat:ID`, `proposal:ID`, `ingest:FILE` or `operator`; `episode:ID` for a summary.
    source = models.CharField(max_length=200, blank=True)
    #: Further values of the memory's type (`arbor.memory.details`).
    detail = models.JSONField(default=dict)
    #: How long the memory is kept, by its kind (`arbor.memory.values.Retention`).
    retention = models.CharField(max_length=9, choices=choices_of(Retention), default=Retention.LASTING)
    #: The episode, and the memory's place in it, from 1, or 0 for the summary; no episode for facts, which have no time.
    episode = TenantForeignKey(
        Episode, null=True, blank=True, deleting=OnDelete.SET_NULL, related_name="memories"
    )
    sequence = models.PositiveIntegerField(default=0)
    occurred_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    #: Empty until the content is embedded; until then recall finds the memory by its words only.
    embedding = HalfVectorField(null=True)
    embedding_model = models.CharField(max_length=100, blank=True)
    #: BM25 document weights by hashed term.
    lexical = SparseVectorField(dimensions=LEXICAL_DIMENSIONS, null=True)
    #: The transaction that wrote the row last, set by a trigger; mind caches read the rows that changed.
    revision = models.BigIntegerField(db_default=0, editable=False)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "memories"
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "content_hash", "session", "position", "type"],
                name="memories_memory_content",
            ),
            models.CheckConstraint(condition=is_share("importance"), name="memories_memory_importance"),
            models.CheckConstraint(condition=is_share("trust"), name="memories_memory_trust"),
            models.CheckConstraint(condition=models.Q(decay_rate__gte=0), name="memories_memory_decay_rate"),
        ]
        indexes = [
            # For recall, which scores every memory by an index-only scan.
            models.Index(
                fields=["tenant", "agent"],
                include=["id", "occurred_at", "expires_at", "embedding", "lexical", "session"],
                name="memories_memory_mind",
                condition=models.Q(status="active"),
            ),
            # Half of the memories belong to no session.
            models.Index(
                fields=["tenant", "agent", "session", "position"],
                name="memories_memory_of_session",
                condition=~models.Q(session=""),
            ),
            models.Index(fields=["tenant", "agent", "-occurred_at"], name="memories_memory_recent"),
            models.Index(
                fields=["tenant", "episode", "sequence"],
                name="memories_memory_episode",
                condition=models.Q(episode__isnull=False),
            ),
            models.Index(
                fields=["tenant", "expires_at"],
                name="memories_memory_expiring",
                condition=models.Q(expires_at__isnull=False, status="active"),
            ),
            # For forgetting: candidates, the least important first, by an index-only scan.
            models.Index(
                fields=["tenant", "agent", "importance", "created_at", "id"],
                include=["type", "retention"],
                name="memories_memory_forgettable",
                condition=models.Q(status="active"),
            ),
            models.Index(
                fields=["tenant", "created_at"],
                name="memories_memory_unembedded",
                condition=models.Q(embedding__isnull=True, status="active"),
            ),
            models.Index(fields=["tenant", "agent", "revision"], name="memories_memory_revised"),
        ]

    def __str__(self) -> str:
        return self.content[:80]


class MemoryAccess(TenantModel):
    """The number of recalls of a memory by its agent, and the time of the last one. Views by people do not count."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="access")
    count = models.IntegerField(default=0)
    #: Empty until the first recall.
    last_at = models.DateTimeField(null=True)
    #: How often the same content, or nearly the same, was stored again.
    reinforced = models.IntegerField(db_default=0)
    reinforced_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = "memory access"
        verbose_name_plural = "memory accesses"

    def __str__(self) -> str:
        return f"{self.count}×"


class Practice(TenantModel):
    """The outcomes of a procedure so far."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="practice")
    successes = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.successes} of {self.successes + self.failures}"


class Term(TenantModel):
    """The number of an agent's memories with a term, for BM25.

    Term 0 counts all memories. Term -1 counts nothing: its row has the terms of recent memories that are not counted yet.
    """

    pk = models.CompositePrimaryKey("tenant_id", "agent_id", "term")
    agent = TenantForeignKey(Agent, related_name="terms")
    term = models.IntegerField()
    memories = models.IntegerField(default=0)
    #: A term for each occurrence in a memory, the latest first; empty for all other rows.
    recent = IntegerArray(null=True, editable=False)

    def __str__(self) -> str:
        return f"{self.term}: {self.memories}"


class EmbeddingCacheEntry(TenantModel):
    """A text's vector by one model, cached per tenant, so that a hit reveals nothing about other tenants' texts."""

    pk = models.CompositePrimaryKey("tenant_id", "model", "content_hash")
    model = models.CharField(max_length=100)
    content_hash = models.BinaryField(max_length=32)
    embedding = HalfVectorField()
    used_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "cached embedding"
        indexes = [models.Index(fields=["tenant", "used_at"], name="memories_cache_by_use")]

    def __str__(self) -> str:
        return self.model


class Upkeep(TenantModel):
    """A memory's precomputed neighborhood and its maintenance flags."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="upkeep")
    agent = TenantForeignKey(Agent, related_name="+")
    #: {memory id: weight} of the 20 most associated memories at most; weights from 0 to 1.8.
    neighbors = models.JSONField(null=True)
    computed_at = models.DateTimeField(null=True)
    #: Whether the neighborhood is missing, or an input of its computation has changed.
    stale = models.BooleanField(default=True)
    #: Whether the memory is not yet assigned to clusters.
    unclustered = models.BooleanField(default=True)
    #: Whether its concepts are not yet extracted.
    unextracted = models.BooleanField(default=True)
    #: Whether its importance is not yet appraised by a model; only where one is configured.
    unweighed = models.BooleanField(default=False)
    #: Whether `Memory.lexical` may lack words of `Memory.detail`. True for rows of older versions of Arbor, which are checked once.
    unindexed = models.BooleanField(default=False, db_default=True)
    #: Numbers of models' replies, about concepts and about importance, that left out this memory; after MAX_TRIES, the rule decides.
    extract_tries = models.PositiveSmallIntegerField(db_default=0)
    weigh_tries = models.PositiveSmallIntegerField(db_default=0)

    class Meta(TenantModel.Meta):
        verbose_name = "memory in upkeep"
        verbose_name_plural = "memories in upkeep"
        indexes = [
            models.Index(
                fields=["tenant", "agent"],
                name=f"memories_upkeep_{flag}",
                condition=models.Q(**{flag: True}),
            )
            for flag in ("unweighed", "unindexed")
        ] + [
            # One index for the three flags that each new memory has; a search for one flag filters by it within the index.
            models.Index(
                fields=["tenant", "agent", "stale", "unclustered", "unextracted"],
                name="memories_upkeep_pending",
                condition=models.Q(stale=True) | models.Q(unclustered=True) | models.Q(unextracted=True),
            )
        ]

    def __str__(self) -> str:
        return f"{len(self.neighbors or {})} neighbors"


class Activation(TenantModel):
    """The activation of a memory: a cache in an unlogged table, which a crash of the database empties."""

    memory = TenantOneToOne(Memory, primary_key=True, related_name="activation")
    agent = TenantForeignKey(Agent, related_name="+")
    #: The activation at the time `at`, from 0 to 1; it fades from then on (`arbor.memory.activation`).
    level = models.FloatField()
    at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        # `at` is not indexed, so that updates change no index; an agent has few rows, which are sorted after reading.
        indexes = [models.Index(fields=["tenant", "agent"], name="memories_activation_of_agent")]

    def __str__(self) -> str:
        return f"{self.level:.2f}"
