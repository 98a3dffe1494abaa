"""Buffer items and code snippets, which are stored beside an agent's memories."""

from __future__ import annotations

from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from apps.agents.models import Agent
from apps.memories.models.memory import Memory
from apps.tenants.fields import OnDelete, TenantForeignKey, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.memory.buffer import PROMOTION_ACCESSES, PROMOTION_IMPORTANCE
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS


class BufferItem(TenantRow):
    """One buffer item, until it expires or is promoted to a memory."""

    agent = TenantForeignKey(Agent, related_name="buffer")
    content = models.TextField()
    content_hash = models.BinaryField(max_length=32)
    #: The speaker, as in `Memory.role`.
    role = models.CharField(max_length=100, blank=True, db_default="")
    importance = models.FloatField(default=0.3)
    #: How far the content is believed, as in `Memory.trust`.
    trust = models.FloatField(default=1.0, db_default=1.0)
    #: The origin: `heartbeat:ID`, `operator`.
    source = models.CharField(max_length=200, blank=True)
    #: Empty until the content is embedded.
    embedding = HalfVectorField(null=True)
    embedding_model = models.CharField(max_length=100, blank=True, db_default="")
    lexical = SparseVectorField(dimensions=LEXICAL_DIMENSIONS, null=True)
    #: How often the agent has used the item.
    accesses = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    #: The memory that the item was promoted to; empty before.
    promoted_to = TenantForeignKey(
        Memory, null=True, blank=True, deleting=OnDelete.SET_NULL, related_name="+"
    )

    class Meta(TenantModel.Meta):
        verbose_name = "buffer item"
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "content_hash"], name="memories_buffer_once"),
            models.CheckConstraint(condition=is_share("importance"), name="memories_buffer_importance"),
            models.CheckConstraint(condition=is_share("trust"), name="memories_buffer_trust"),
        ]
        indexes = [
            models.Index(fields=["tenant", "expires_at"], name="memories_buffer_expiring"),
            models.Index(
                fields=["tenant", "promoted_to"],
                name="memories_buffer_by_memory",
                condition=models.Q(promoted_to__isnull=False),
            ),
            models.Index(
                fields=["tenant", "agent"],
                name="memories_buffer_mattering",
                condition=models.Q(promoted_to__isnull=True)
                & (
                    models.Q(importance__gte=PROMOTION_IMPORTANCE)
                    | models.Q(accesses__gte=PROMOTION_ACCESSES)
                ),
            ),
            models.Index(
                fields=["tenant", "created_at"],
                name="memories_buffer_unembedded",
                condition=models.Q(embedding__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.content[:80]


class CodeSnippet(TenantRow):
    """A code snippet from a conversation or a message."""

    agent = TenantForeignKey(Agent, related_name="code")
    #: The language named after the opening fence; empty: none.
    language = models.CharField(max_length=40, blank=True)
    #: The last line of prose before the code.
    title = models.CharField(max_length=300, blank=True)
    code = models.TextField()
    #: SHA-256 of the code, which an agent stores only once.
    code_hash = models.BinaryField(max_length=32)
    #: The origin: `chat:ID`, `heartbeat:ID`.
    source = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "code snippet"
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "code_hash"], name="memories_code_once")
        ]

    def __str__(self) -> str:
        return self.title or self.code[:60]
