"""The trust of people in agents as rows: presets, rules, and requests for approval."""

from __future__ import annotations

from typing import Any

import orjson
from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey, TenantOneToOne, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.agents.capabilities import MAX_URI_LENGTH
from arbor.authority.approvals import ApprovalStatus
from arbor.authority.modes import TrustMode, TrustPreset
from arbor.tools.names import ACTION_LENGTH

#: Characters of a body hash: SHA-256 in hexadecimal digits.
_HASH_LENGTH = 64


class AgentTrust(TenantModel):
    """The preset that a person has chosen for an agent. Without a row: the preset of its trust tier."""

    agent = TenantOneToOne(Agent, primary_key=True, related_name="trust")
    preset = models.CharField(max_length=12, choices=choices_of(TrustPreset))

    class Meta(TenantModel.Meta):
        verbose_name = "trust preset"
        verbose_name_plural = "trust presets"

    def __str__(self) -> str:
        return self.preset


class ModeRule(TenantRow):
    """The mode that a person has set for a resource and everything below it."""

    #: None: all agents of the tenant.
    agent = TenantForeignKey(Agent, null=True, related_name="mode_rules")
    #: An `arbor://` URI.
    prefix = models.CharField(max_length=MAX_URI_LENGTH)
    mode = models.CharField(max_length=5, choices=choices_of(TrustMode))
    #: Who set it, as an actor of the audit log.
    set_by = models.CharField(max_length=200)
    set_at = models.DateTimeField(auto_now=True)

    class Meta(TenantModel.Meta):
        verbose_name = "trust rule"
        verbose_name_plural = "trust rules"
        ordering = ["prefix"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "prefix"],
                condition=models.Q(agent__isnull=False),
                name="authority_rule_of_agent",
            ),
            models.UniqueConstraint(
                fields=["tenant", "prefix"],
                condition=models.Q(agent__isnull=True),
                name="authority_rule_of_tenant",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}: {self.mode}"


class ActionApproval(TenantRow):
    """A request of an agent to act, which a person approves or denies; an approved action runs once."""

    agent = TenantForeignKey(Agent, related_name="approvals")
    #: The heartbeat that asked, its round trip and the place of the action in it; no reference, because the record
    #: outlives the heartbeat.
    heartbeat_id = models.UUIDField(null=True)
    round_trip = models.PositiveSmallIntegerField(default=1)
    index = models.PositiveSmallIntegerField(default=0)
    action = models.CharField(max_length=ACTION_LENGTH)
    resource = models.CharField(max_length=MAX_URI_LENGTH)
    #: The complete parameters as canonical JSON, and its hash (`arbor.authority.requests.body_hash`). As text, because the
    #: database changes numbers and refuses some characters of JSON.
    body = models.TextField()
    body_hash = models.CharField(max_length=_HASH_LENGTH)
    #: The first text of the parameters, for lists and prompts.
    about = models.CharField(max_length=200, blank=True)
    reasoning = models.TextField(blank=True)
    #: The goal and the intent that the action serves, as the model named them.
    goal_id = models.CharField(max_length=80, null=True)
    intent_id = models.CharField(max_length=80, null=True)
    #: Why a person is asked: the rule and its source.
    why = models.CharField(max_length=MAX_URI_LENGTH + 100)
    status = models.CharField(
        max_length=9,
        choices=choices_of(ApprovalStatus),
        default=ApprovalStatus.PENDING,
    )
    asked_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    #: Who decided: `user:NAME`, `cli:NAME`, `token:NAME`; why, and when.
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True)
    reason = models.TextField(blank=True)
    #: The heartbeat that executed the action, and when.
    executed_by = models.UUIDField(null=True)
    executed_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        verbose_name = "approval"
        ordering = ["-asked_at"]
        indexes = [
            # Read by every leg of a heartbeat; the time in the index skips expired requests.
            models.Index(
                fields=["tenant", "agent", "expires_at"],
                name="authority_approval_read",
                condition=models.Q(status__in=["pending", "approved", "denied"]),
            ),
            models.Index(
                fields=["tenant", "-asked_at"],
                name="authority_approval_pending",
                condition=models.Q(status="pending"),
            ),
            models.Index(fields=["tenant", "-asked_at"], name="authority_approval_by_time"),
            models.Index(fields=["tenant", "agent", "-asked_at"], name="authority_approval_by_agent"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "agent", "resource", "body_hash"],
                condition=models.Q(status__in=["pending", "approved"]),
                name="authority_approval_once",
            ),
            models.CheckConstraint(
                condition=models.Q(status="executed", executed_by__isnull=False)
                | (~models.Q(status="executed") & models.Q(executed_by__isnull=True)),
                name="authority_approval_executed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action}: {self.status}"

    @property
    def params(self) -> dict[str, Any]:
        """Return the parameters."""
        parsed: dict[str, Any] = orjson.loads(self.body)
        return parsed
