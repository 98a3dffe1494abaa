"""Subscriptions of agents to signals, with the position up to which an agent has read them."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow


class SignalSubscription(TenantRow):
    """A subscription of an agent; the agent's next prompt includes its signals."""

    agent = TenantForeignKey(Agent, related_name="subscriptions")
    #: The agent that the signals are about, itself or a peer; empty: what the tenant's agents share.
    source = TenantForeignKey(Agent, null=True, related_name="+")
    #: Names of signals, or patterns such as `memory.goal_*`.
    names = models.JSONField(default=list)
    #: The position of the last batch of signals that a prompt had, or that came before the subscription.
    position = models.UUIDField()
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "subscription"
        ordering = ["created_at", "id"]
        indexes = [
            models.Index(fields=["tenant", "agent"], name="knowledge_sub_by_agent"),
            models.Index(fields=["tenant", "source"], name="knowledge_sub_by_source"),
        ]

    def __str__(self) -> str:
        return f"{', '.join(self.names)} of {self.source or 'the tenant'}"
