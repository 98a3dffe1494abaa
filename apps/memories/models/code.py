"""Code snippets that an agent was shown or wrote."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel
from arbor.ids import uuid7


class CodeSnippet(TenantModel):
    """A code snippet from a conversation or a message."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="code")
    #: As its fence names it; empty when it does not.
    language = models.CharField(max_length=40, blank=True)
    #: What it is about: the words around it.
    title = models.CharField(max_length=300, blank=True)
    code = models.TextField()
    #: SHA-256 of the code: an agent keeps it once.
    code_hash = models.BinaryField(max_length=32)
    #: `chat:ID`, `heartbeat:ID`.
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
