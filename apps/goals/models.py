"""What an agent wants, how far it has come, and the steps it has committed to."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import OnDelete, TenantForeignKey
from apps.tenants.models import TenantModel
from arbor.goals.intents import IntentStatus
from arbor.goals.values import GoalLayer, GoalSource, GoalState
from arbor.ids import uuid7


class Goal(TenantModel):
    """Something an agent wants, in a state of the backlog."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="goals")
    parent = TenantForeignKey(
        "self", deleting=OnDelete.SET_NULL, null=True, blank=True, related_name="children"
    )
    title = models.CharField(max_length=300)
    #: What done looks like.
    description = models.TextField(blank=True)
    state = models.CharField(max_length=16, choices=[(s.value, s.value) for s in GoalState])
    layer = models.CharField(max_length=16, choices=[(s.value, s.value) for s in GoalLayer])
    source = models.CharField(max_length=16, choices=[(s.value, s.value) for s in GoalSource])
    #: Share that is done, 0 to 1.
    fraction = models.FloatField(default=0.0)
    blocked_by = models.TextField(blank=True)
    deadline = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    touched_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    abandoned_at = models.DateTimeField(null=True, blank=True)
    abandonment_reason = models.TextField(blank=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "agent", "state"], name="goals_goal_backlog")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(fraction__gte=0) & models.Q(fraction__lte=1), name="goals_goal_fraction"
            ),
        ]

    def __str__(self) -> str:
        return self.title


class ProgressNote(TenantModel):
    """One note on how a goal is going."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    goal = TenantForeignKey(Goal, related_name="notes")
    text = models.TextField()
    #: The heartbeat that wrote it, if one did.
    heartbeat_id = models.UUIDField(null=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "goal", "-at"], name="goals_note_by_goal")]

    def __str__(self) -> str:
        return self.text


class Intent(TenantModel):
    """One committed step towards a goal."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    agent = TenantForeignKey(Agent, related_name="intents")
    goal = TenantForeignKey(Goal, related_name="intents")
    action = models.CharField(max_length=40)
    description = models.TextField()
    status = models.CharField(
        max_length=16, choices=[(s.value, s.value) for s in IntentStatus], default=IntentStatus.PENDING
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["tenant", "agent", "status"], name="goals_intent_by_status")]

    def __str__(self) -> str:
        return f"{self.action}: {self.description}"
