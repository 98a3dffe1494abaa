"""Pages of API tokens, and of requests with idempotency keys."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.access.models import ApiToken, IdempotentRequest
from apps.console import cells, columns
from apps.console.listing import ConsoleAdmin


@admin.register(ApiToken)
class ApiTokenAdmin(ConsoleAdmin):
    """List the API tokens of the tenant. `arbor token` and the API create and revoke tokens."""

    list_display = ("name", "prefix", "role_badge", "agent", "expires_at", "last_used_at", "revoked_at")
    search_fields = ("name", "prefix")
    fields = (
        "name",
        "prefix",
        "role",
        "agent",
        "tasks_only",
        "created_by",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiToken]:
        """Read without the hashes."""
        rows: QuerySet[ApiToken] = super().get_queryset(request)
        return rows.select_related("agent").defer("token_hash")

    role_badge = columns.cell("role", lambda token: cells.badge(token.role, "calm"))


@admin.register(IdempotentRequest)
class IdempotentRequestAdmin(ConsoleAdmin):
    """List the requests of the last day that came with an idempotency key."""

    list_display = ("key", "token", "status", "created_at")
    search_fields = ("key",)
    fields = ("key", "token", "status", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[IdempotentRequest]:
        """Read without the responses."""
        rows: QuerySet[IdempotentRequest] = super().get_queryset(request)
        return rows.select_related("token").defer("body", "request_hash", "token__token_hash")
