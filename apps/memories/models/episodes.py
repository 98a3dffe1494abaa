"""Episodes: memories of one session without a long gap."""

from __future__ import annotations

from django.db import models
from pgvector.django import HalfVectorField, SparseVectorField

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow
from arbor.memory.text.lexical import LEXICAL_DIMENSIONS
from arbor.quotations import counted


class Episode(TenantRow):
    """Memories of one session without a gap of half an hour.

    Its members refer to it by `Memory.episode`, and `Memory.sequence` is their place. An agent has at most one open
    episode for each session.
    """

    agent = TenantForeignKey(Agent, related_name="episodes")
    session = models.CharField(max_length=100, blank=True)
    #: The times of the first and the last memory.
    started_at = models.DateTimeField()
    last_at = models.DateTimeField()
    #: When the episode was closed; empty while it is open.
    ended_at = models.DateTimeField(null=True)
    #: The number of memories ever added, which is the place of the last one.
    size = models.PositiveIntegerField(default=0)
    summary = models.TextField(blank=True)
    #: The author of the summary: a model, or the name of the rule.
    summarized_by = models.CharField(max_length=200, blank=True)
    summarized_at = models.DateTimeField(null=True)
    #: Whether the summary is stored as a memory too (`Memory.sequence` 0), or needs none.
    remembered = models.BooleanField(default=False, db_default=False)
    #: Failed attempts at a summary, and the last error.
    failures = models.PositiveSmallIntegerField(default=0)
    failure = models.TextField(blank=True)
    #: The vector of the summary; empty until it is embedded.
    embedding = HalfVectorField(null=True)
    embedding_model = models.CharField(max_length=100, blank=True, db_default="")
    lexical = SparseVectorField(dimensions=LEXICAL_DIMENSIONS, null=True)

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "session"],
                condition=models.Q(ended_at__isnull=True),
                name="memories_episode_one_open",
            ),
            models.CheckConstraint(
                condition=models.Q(started_at__lte=models.F("last_at")), name="memories_episode_order"
            ),
        ]
        indexes = [
            # By the start: each memory changes the end of its episode, and an update of no indexed column touches no index.
            models.Index(fields=["tenant", "agent", "-started_at"], name="memories_episode_recent"),
            models.Index(
                fields=["tenant", "agent", "session", "-started_at"], name="memories_episode_session"
            ),
            models.Index(
                fields=["tenant", "agent", "ended_at"],
                name="memories_episode_unsummarized",
                condition=models.Q(ended_at__isnull=False, summarized_at__isnull=True),
            ),
            models.Index(
                fields=["tenant", "started_at"],
                name="memories_episode_unembedded",
                condition=models.Q(embedding__isnull=True, summarized_at__isnull=False),
            ),
            models.Index(
                fields=["tenant", "agent"],
                name="memories_episode_unremembered",
                condition=models.Q(remembered=False, summarized_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.summary[:80] or counted(self.size, "memory", "memories")
