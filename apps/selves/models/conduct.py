"""Boundaries, experiences and peers of agents."""

from __future__ import annotations

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import OnDelete, TenantForeignKey, choices_of, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.selves.boundaries import BoundaryResponse, BoundaryType
from arbor.tools.names import ACTION_LENGTH


class Boundary(TenantRow):
    """A boundary of an agent's own, which overrides a default one of the same name."""

    agent = TenantForeignKey(Agent, related_name="boundaries")
    name = models.CharField(max_length=60)
    description = models.TextField(blank=True)
    type = models.CharField(max_length=10, choices=choices_of(BoundaryType))
    #: Words and phrases that match, on word borders: [text].
    patterns = models.JSONField(default=list)
    #: Sentences that match by meaning: [text], and their vectors with the model that made them.
    examples = models.JSONField(default=list)
    vectors = models.JSONField(default=dict)
    response = models.CharField(max_length=10, choices=choices_of(BoundaryResponse))
    #: Flexibility from 0, hard, to 1, negotiable; importance from 0 to 1.
    flexibility = models.FloatField(default=0.0)
    importance = models.FloatField(default=0.5)
    enabled = models.BooleanField(default=True)
    source = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name_plural = "boundaries"
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "agent", "name"], name="selves_boundary_name"),
            models.CheckConstraint(condition=is_share("flexibility"), name="selves_boundary_flexibility"),
            models.CheckConstraint(condition=is_share("importance"), name="selves_boundary_importance"),
        ]

    def __str__(self) -> str:
        return self.name


class PeerModel(TenantRow):
    """An agent's model of a peer: another agent of its tenant, or a person."""

    agent = TenantForeignKey(Agent, related_name="peers")
    #: The peer, if it is an agent that exists; otherwise only the name is known.
    peer = TenantForeignKey(Agent, deleting=OnDelete.SET_NULL, null=True, blank=True, related_name="+")
    #: Whether the peer is, or was, an agent: nobody of its name inherits the model of an agent that is gone.
    is_agent = models.BooleanField(default=False, db_default=False)
    name = models.CharField(max_length=200)
    #: 0 to 1.
    competence = models.FloatField(default=0.5)
    reliability = models.FloatField(default=0.5)
    #: The peer's interests: [text].
    interests = models.JSONField(default=list)
    #: Meetings that the agent has judged: those of which it reported the outcome.
    interactions = models.PositiveIntegerField(default=0)
    #: Interactions that went well.
    successes = models.PositiveIntegerField(default=0)
    #: The agent's heartbeat number at the last interaction, and when the last meeting was, judged or not.
    last_heartbeat_number = models.BigIntegerField(default=0)
    last_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = "peer"
        constraints = [
            # Agents by id, people by name.
            models.UniqueConstraint(
                fields=["tenant", "agent", "name"],
                name="selves_peer_person",
                condition=models.Q(is_agent=False),
            ),
            models.UniqueConstraint(
                fields=["tenant", "agent", "peer"],
                name="selves_peer_agent",
                condition=models.Q(peer__isnull=False),
            ),
            models.CheckConstraint(
                condition=models.Q(successes__lte=models.F("interactions")), name="selves_peer_successes"
            ),
        ]
        indexes = [
            # Each heartbeat reads all peers of its agent: the unique indexes have a part of them each.
            models.Index(fields=["tenant", "agent"], name="selves_peer_by_agent"),
            # For an agent's reputation: the models that others have of it.
            models.Index(
                fields=["tenant", "peer"], name="selves_peer_by_peer", condition=models.Q(peer__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Experience(TenantRow):
    """An action with its outcome and lesson (seed 003, 3.4)."""

    agent = TenantForeignKey(Agent, related_name="experiences")
    #: The heartbeat, and its number.
    heartbeat_id = models.UUIDField()
    heartbeat_number = models.BigIntegerField()
    action = models.CharField(max_length=ACTION_LENGTH)
    #: The action and its subject.
    about = models.TextField(blank=True)
    outcome = models.CharField(max_length=10)
    lesson = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["-at"]
        indexes = [
            models.Index(
                fields=["tenant", "agent", "-heartbeat_number"], name="selves_experience_by_heartbeat"
            )
        ]

    def __str__(self) -> str:
        return f"{self.action}: {self.outcome}"
