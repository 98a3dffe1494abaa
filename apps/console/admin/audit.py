"""Pages of the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.audit.services import LOOKING_FOR
from apps.console import cells, columns
from apps.console.listing import ConsoleAdmin, PlatformAdmin
from apps.console.windows import ROWS_FILTERED, latest_rows
from apps.tenants.scope import OPS


class _EventColumns:
    """Columns of both kinds of events."""

    list_display: Any = ("happened", "action_badge", "actor", "message")
    list_filter: Any = (("action", ChoicesDropdownFilter),)
    sortable_by: Any = ()
    fields: Any = ("action", "actor", "message", "at", "detail_shown")

    happened = columns.moment("at", "when")
    action_badge = columns.cell(
        "act",
        lambda event: cells.badge(
            event.action.replace(".", ": "), cells.tone(event.action.rpartition(".")[2])
        ),
    )
    detail_shown = columns.json("detail", "detail")


class LookUps(admin.SimpleListFilter):
    """Filters look-ups of names and ids, which the command line makes often; hidden by default."""

    title = "look-ups"
    parameter_name = "look_ups"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the filter's choices."""
        return [("shown", "Shown")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Return the choices with their default label."""
        without, *others = super().choices(changelist)
        yield {**without, "display": "Left out"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Exclude look-ups unless they are chosen."""
        if self.value() == "shown":
            return queryset
        return queryset.exclude(
            action=AuditAction.CROSS_TENANT_VIEW,
            message__startswith=f"{LOOKING_FOR} ",
            actor__startswith="cli:",
        )


@admin.register(AuditEvent)
class AuditEventAdmin(_EventColumns, ConsoleAdmin):
    """Acts in the tenant."""

    ordering = ("-at",)
    filters_latest = True
    search_fields = ("actor", "agent_id")
    search_help_text = "An actor such as user:NAME, or an agent's id"
    # An agent's page links to the agent's acts.
    linked_lookups = frozenset({"agent_id__exact"})
    fields = ("action", "actor", "message", "at", "agent_id", "detail_shown")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by actor or agent."""
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            return queryset.filter(agent_id=UUID(term)), False
        except ValueError:
            # Text that is no id can only be an actor's name.
            of_actor = queryset.filter(Q(actor__startswith=term) | Q(actor=f"user:{term}"))
            return latest_rows(of_actor, order="-at", most=ROWS_FILTERED)[0], False


@admin.register(PlatformEvent)
class PlatformEventAdmin(_EventColumns, PlatformAdmin):
    """Acts on the installation as a whole; only the operations role reads them. Look-ups are shown on demand."""

    list_filter = (LookUps, *_EventColumns.list_filter)
    list_before_template = "console/parts/look_ups.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PlatformEvent]:
        """Read as the operations role."""
        return PlatformEvent.objects.using(OPS).order_by("-id")
