"""Proposals and the self history."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import OnDelete, TenantForeignKey, choices_of, is_share
from apps.tenants.models import TenantModel, TenantRow
from arbor.selves.proposals import ProposalKind, ProposalStatus


class Proposal(TenantRow):
    """A change to the self that waits for a decision; only a heartbeat of the agent or a person decides."""

    agent = TenantForeignKey(Agent, related_name="proposals")
    kind = models.CharField(max_length=12, choices=choices_of(ProposalKind))
    content = models.TextField()
    #: The effect of acceptance: {"aspect": kind} for identity, {"belief": id, "confidence": …} for a belief, ….
    change = models.JSONField(default=dict)
    #: 0 to 1.
    confidence = models.FloatField()
    #: Ids of the memories that are its evidence.
    evidence = models.JSONField(default=list)
    #: The origin, such as `heartbeat:ID`, `chat:ID`, `consolidation` or `operator`.
    source = models.CharField(max_length=200)
    status = models.CharField(
        max_length=8, choices=choices_of(ProposalStatus), default=ProposalStatus.PENDING
    )
    #: The number of deferrals.
    deferrals = models.PositiveSmallIntegerField(default=0)
    reason = models.TextField(blank=True)
    #: Who decided: `heartbeat:ID`, `user:NAME`, `cli:NAME`, `token:NAME`.
    decided_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering = ["-created_at"]
        indexes = [
            models.Index(
                fields=["tenant", "agent"],
                name="selves_proposal_pending",
                condition=models.Q(status="pending"),
            ),
            models.Index(fields=["tenant", "agent", "-created_at"], name="selves_proposal_by_agent"),
        ]
        constraints = [
            models.CheckConstraint(condition=is_share("confidence"), name="selves_proposal_confidence"),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.content[:60]}"


class SelfChange(TenantRow):
    """A change of an agent's self: before, after, and who decided. Written once.

    All changes of an agent together are the complete history of its self: the first is the birth, and each version is the
    position that one act led to.
    """

    app_privileges: ClassVar[str] = "SELECT, INSERT"

    agent = TenantForeignKey(Agent, related_name="+")
    #: The version that the change led to: 1 for the birth. The changes of one act, such as a rollback, share it.
    version = models.PositiveIntegerField()
    #: An `arbor.selves.history.PartKind` and its id; of the birth, the agent's id.
    what = models.CharField(max_length=16)
    target_id = models.UUIDField()
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    proposal = TenantForeignKey(Proposal, deleting=OnDelete.SET_NULL, null=True, related_name="+")
    #: Who decided, as of a proposal, and why.
    decided_by = models.CharField(max_length=200)
    reason = models.TextField(default="", db_default="")
    at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        verbose_name = "self change"
        verbose_name_plural = "self history"
        ordering = ["-at"]
        indexes = [
            models.Index(fields=["tenant", "agent", "-at"], name="selves_change_by_agent"),
            models.Index(
                fields=["tenant", "proposal"],
                name="selves_change_by_proposal",
                condition=models.Q(proposal__isnull=False),
            ),
        ]
        constraints = [
            # Also the index of the latest version.
            models.UniqueConstraint(
                fields=["tenant", "agent", "version", "what", "target_id"], name="selves_change_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.what} changed by {self.decided_by}"
