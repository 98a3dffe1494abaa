"""Lists of skills, their versions, active skills and subscriptions, which change on the page *Skills* and on pages of agents."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.console import cells, columns
from apps.console.listing import AgentRowsAdmin, ConsoleAdmin, filters_by_agent
from apps.knowledge.models import (
    AgentSkill,
    GlobalSkill,
    GlobalSkillVersion,
    SignalSubscription,
    Skill,
    SkillVersion,
)


class _SkillAdmin(ConsoleAdmin):
    list_display: tuple[str, ...] = ("name", "version", "tokens", "summary", "updated_at")
    search_fields = ("name",)
    ordering = ("name",)
    fields: tuple[str, ...] = (
        "name",
        "version",
        "description",
        "tags_shown",
        "tokens",
        "digest",
        "updated_at",
    )

    summary = columns.beginning("description", "description")
    tags_shown = columns.lines("tags", "tags")


@admin.register(Skill)
class SkillAdmin(_SkillAdmin):
    """List the tenant's own skills."""


@admin.register(GlobalSkill)
class GlobalSkillAdmin(_SkillAdmin):
    """List the skills of the installation."""

    list_display = ("name", "version", "tokens", "is_present", "summary", "updated_at")
    fields = (*_SkillAdmin.fields, "is_present")


class _SkillVersionAdmin(ConsoleAdmin):
    list_display = ("name", "version", "digest", "created_by", "created_at")
    search_fields = ("name",)
    ordering = ("name", "-created_at")
    fields = ("name", "version", "digest", "created_by", "created_at", "file")

    file = columns.cell("file", lambda version: cells.block(version.text))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Defer the files, which only the page of one version shows."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer("text")


@admin.register(SkillVersion)
class SkillVersionAdmin(_SkillVersionAdmin):
    """List the versions of the tenant's own skills."""


@admin.register(GlobalSkillVersion)
class GlobalSkillVersionAdmin(_SkillVersionAdmin):
    """List the versions of the installation's skills."""


@admin.register(AgentSkill)
class AgentSkillAdmin(AgentRowsAdmin):
    """List the active skills of agents; chosen on the page of an agent's skills."""

    list_display = ("agent_link", "position", "name")
    text_fields = ("name",)
    list_filter = filters_by_agent()
    ordering = ("-agent_id", "position")
    fields = ("agent", "position", "name")


@admin.register(SignalSubscription)
class SignalSubscriptionAdmin(AgentRowsAdmin):
    """List the subscriptions of agents to signals; changed on the page of an agent's subscriptions."""

    list_display = ("agent_link", "signals", "source", "created_by", "created_at")
    joined = ("agent", "source")
    deferred = (*AgentRowsAdmin.deferred, "source__character", "source__genome", "source__pipeline")
    ordering = ("-agent_id", "created_at")
    fields = ("agent", "signals", "source", "position", "created_by", "created_at")

    signals = columns.cell("signals", lambda row: ", ".join(row.names))
