"""MCP servers of a tenant, and their tools."""

from __future__ import annotations

from django.db import models

from apps.tenants.fields import TenantForeignKey, choices_of
from apps.tenants.models import TenantModel, TenantRow
from arbor.tools.names import SERVER_LENGTH, TOOL_LENGTH, action_of
from arbor.tools.status import ToolStatus


class ToolServer(TenantRow):
    """An MCP server whose tools agents of the tenant may call, as far as operators allow."""

    #: A part of the names of its tools' actions.
    name = models.CharField(max_length=SERVER_LENGTH)
    url = models.CharField(max_length=500)
    #: The secret of its requests, sealed under master key k: {v, k, ct, iv, tag}; {} without one.
    sealed_secret = models.JSONField(default=dict)
    #: When its tools were last listed; empty: never.
    listed_at = models.DateTimeField(null=True)
    #: Tools of the last listing that cannot be used, with reasons: [text].
    skipped = models.JSONField(default=list)
    #: Why the last listing or call failed; empty since one worked.
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta(TenantModel.Meta):
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="tools_server_name")]

    def __str__(self) -> str:
        return self.name


class Tool(TenantRow):
    """A tool of a server. Its texts are the server's, without hidden characters and within limits."""

    server = TenantForeignKey(ToolServer, related_name="tools")
    name = models.CharField(max_length=TOOL_LENGTH)
    description = models.TextField(blank=True)
    #: The JSON schema of its arguments (`arbor.tools.schemas.reduced_schema`).
    schema = models.JSONField(default=dict)
    #: The fingerprint of its last listing (`arbor.tools.ports.ListedTool`).
    fingerprint = models.CharField(max_length=64)
    status = models.CharField(max_length=8, choices=choices_of(ToolStatus), default=ToolStatus.OFF)
    #: The price in energy.
    cost = models.PositiveSmallIntegerField()
    #: Whether all agents may call it; False: only those with a grant of its action.
    for_all = models.BooleanField(default=True)
    #: The description and schema that an operator allowed, of a changed tool: {description, schema}.
    before = models.JSONField(default=dict)
    listed_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        ordering = ["server__name", "name"]
        constraints = [models.UniqueConstraint(fields=["tenant", "server", "name"], name="tools_tool_name")]
        indexes = [
            models.Index(
                fields=["tenant"], name="tools_in_use", condition=~models.Q(status=ToolStatus.OFF.value)
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def action(self) -> str:
        """Return the name of the action that calls the tool."""
        return action_of(self.server.name, self.name)
