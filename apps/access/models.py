"""API tokens as rows."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.agents.models import Agent
from apps.tenants.fields import TenantForeignKey
from apps.tenants.models import Role, TenantModel, TenantRow


class ApiToken(TenantRow):
    """A program's credential for one tenant. The token itself is shown once; the row has its hash."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE (last_used_at, revoked_at)"

    name = models.CharField(max_length=100)
    role = models.CharField(max_length=16, choices=Role, default=Role.VIEWER)
    #: The only agent that the token reaches; empty: all agents of the tenant.
    agent = TenantForeignKey(Agent, null=True, blank=True, related_name="+")
    #: Whether the token is for an agent elsewhere: it gives tasks to published agents, and neither reads nor changes anything else.
    tasks_only = models.BooleanField(default=False, db_default=False)
    #: The beginning of the token, by which people recognize it.
    prefix = models.CharField(max_length=20, editable=False)
    #: SHA-256 of the token.
    token_hash = models.BinaryField(max_length=32, editable=False)
    created_by = models.CharField(max_length=200, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    #: Empty: it does not expire.
    expires_at = models.DateTimeField(null=True, blank=True)
    #: To the minute.
    last_used_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)

    class Meta(TenantModel.Meta):
        verbose_name = "API token"
        ordering = ["-created_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "prefix"], name="access_apitoken_prefix"),
            models.UniqueConstraint(
                fields=["tenant", "name"],
                condition=models.Q(revoked_at=None),
                name="access_apitoken_name",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class IdempotentRequest(TenantRow):
    """A request with an idempotency key, and its response. It is deleted after a day."""

    ops_privileges: ClassVar[str] = "SELECT, DELETE"

    token = TenantForeignKey(ApiToken, related_name="+")
    key = models.CharField(max_length=100)
    #: SHA-256 of method, address and body.
    request_hash = models.BinaryField(max_length=32)
    #: Empty while the request is being carried out.
    status = models.PositiveSmallIntegerField(null=True)
    #: Empty where the response has a secret.
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(auto_now_add=True)

    #: The rows of all tenants, for their deletion by the operations role.
    across = models.Manager()

    class Meta(TenantModel.Meta):
        default_manager_name = "objects"
        indexes = [models.Index(fields=["created_at"], name="access_request_by_time")]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "token", "key"], name="access_request_once"),
        ]

    def __str__(self) -> str:
        return f"{self.key}: {self.status or 'under way'}"
