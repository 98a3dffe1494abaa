"""Percepts: the events that reach agents between heartbeats."""

from __future__ import annotations

from django.db import models

from apps.agents.models.agents import Agent
from apps.tenants.fields import OnDelete, TenantForeignKey
from apps.tenants.models import TenantModel, TenantRow


class PerceptKind(models.TextChoices):
    """Kinds of percepts."""

    #: A person wrote to the agent.
    USER_MESSAGE = "user_message"
    #: Another agent of the tenant wrote to the agent.
    PEER_MESSAGE = "peer_message"
    #: An action with a later result has ended.
    ACTION_RESULT = "action_result"
    #: Something happened in the agent's environment.
    ENVIRONMENT = "environment"
    #: Another system posted to a hook of the agent.
    WEBHOOK = "webhook"
    #: Something went wrong.
    ERROR = "error"
    #: A step was abandoned because it used up its heartbeats.
    TIMEOUT = "timeout"
    #: A person interrupts the agent.
    INTERRUPT = "interrupt"


class Percept(TenantRow):
    """An event that reached an agent and is pending until a heartbeat takes it in."""

    agent = TenantForeignKey(Agent, related_name="percepts")
    kind = models.CharField(max_length=16, choices=PerceptKind)
    #: Empty while the message is sealed.
    content = models.TextField()
    #: `arbor.agents.sealed_messages.SealedMessage` as JSON, for a message of an agent until it is taken in, and if it was refused.
    sealed = models.JSONField(null=True)
    #: The agent that sent the message, for a message of an agent.
    peer = TenantForeignKey(Agent, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: Ids of its subject: {"goal": id, "intent": id, "message": id, …}.
    detail = models.JSONField(default=dict, db_default={})
    #: Whether the percept brought the next heartbeat forward.
    urgent = models.BooleanField(default=False, db_default=False)
    at = models.DateTimeField(auto_now_add=True)
    #: The heartbeat that took in the percept; empty while pending.
    heartbeat = TenantForeignKey(
        "heartbeats.Heartbeat", deleting=OnDelete.SET_NULL, null=True, related_name="+"
    )

    class Meta(TenantModel.Meta):
        db_table = "heartbeats_percept"
        indexes = [
            models.Index(fields=["tenant", "agent", "-at"], name="heartbeats_percept_of_agent"),
            models.Index(
                fields=["tenant", "peer"],
                name="heartbeats_percept_of_peer",
                condition=models.Q(peer__isnull=False),
            ),
            models.Index(
                fields=["tenant", "agent", "at"],
                name="heartbeats_percept_waiting",
                condition=models.Q(heartbeat__isnull=True),
            ),
            models.Index(
                fields=["tenant", "heartbeat"],
                name="heartbeats_percept_heartbeat",
                condition=models.Q(heartbeat__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(sealed__isnull=True) | models.Q(content=""),
                name="heartbeats_percept_sealed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.content[:60] if self.sealed is None else 'sealed'}"
