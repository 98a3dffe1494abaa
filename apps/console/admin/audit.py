"""Pages of the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.audit.services import LOOKUP_VERB
from apps.audit.services.search import AuditFilter
from apps.console import cells, columns, windows
from apps.console.listing import ConsoleAdmin, PlatformAdmin
from apps.tenants.scope import OPS
from arbor.ids import read_id

#: The tones of the badges of levels.
_LEVEL_TONES = {"info": "calm", "warning": "warn", "error": "bad"}


class _EventColumns:
    """Columns of both kinds of events."""

    list_display: Any = ("happened", "level_badge", "action_badge", "actor", "message")
    list_filter: Any = (("level", ChoicesDropdownFilter), ("action", ChoicesDropdownFilter))
    sortable_by: Any = ()
    fields: Any = (
        *("action_badge", "level_badge", "actor", "message", "at"),
        *("detail_shown", "before_shown", "after_shown"),
    )

    happened = columns.moment("at", "when")
    level_badge = columns.cell("level", lambda event: cells.badge(event.level, _LEVEL_TONES[event.level]))
    action_badge = columns.cell(
        "act",
        lambda event: cells.badge(
            event.action.replace(".", ": "), cells.tone_of(event.action.rpartition(".")[2])
        ),
    )
    detail_shown = columns.json("detail", "detail")
    before_shown = columns.json("before", "before")
    after_shown = columns.json("after", "after")


class LookUps(admin.SimpleListFilter):
    """Hides look-ups of names and ids, which the command line makes often, unless they are chosen."""

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
            message__startswith=f"{LOOKUP_VERB} ",
            actor__startswith="cli:",
        )


@admin.register(AuditEvent)
class AuditEventAdmin(_EventColumns, ConsoleAdmin):
    """List the audited acts in the tenant."""

    ordering = ("-at",)
    filters_latest = True
    search_fields = ("message", "actor", "agent_id")
    search_help_text = "Words of the message, an actor such as user:NAME, or an agent's id"
    list_before_template = "console/parts/audit_chain.html"
    # An agent's page links to the agent's acts.
    linked_lookups = frozenset({"agent_id__exact"})
    fields = (
        *("action_badge", "level_badge", "actor", "message", "at", "agent"),
        *("detail_shown", "before_shown", "after_shown"),
    )

    @admin.display(description="agent")
    def agent(self, event: AuditEvent) -> str:
        """Link the agent by its name; an agent that was destroyed has its id only."""
        if event.agent_id is None:
            return "–"
        name = Agent.objects.filter(id=event.agent_id).values_list("name", flat=True).first()
        return str(event.agent_id) if name is None else cells.link("agents_agent", event.agent_id, name)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by words of the message, by actor, or by the id of an agent."""
        term = search_term.strip()
        if not term:
            return queryset, False
        named_id = read_id(term)
        if named_id is not None:
            return queryset.filter(agent_id=named_id), False
        by_actor = Q(actor__startswith=term) | Q(actor=f"user:{term}")
        found = queryset.filter(by_actor | AuditFilter(words=term).in_message())
        agent_id = read_id(request.GET.get("agent_id__exact", ""))
        among = {} if agent_id is None else {"agent_id": agent_id}
        latest, has_older = windows.latest_rows(found, order="-at", most=windows.ROWS_FILTERED, **among)
        if has_older:
            messages.info(
                request,
                f"Searched in the latest {windows.ROWS_FILTERED:,} records; `arbor audit search` searches all.",
            )
        return latest, False


@admin.register(PlatformEvent)
class PlatformEventAdmin(_EventColumns, PlatformAdmin):
    """List the audited acts on the whole installation, which only the operations role reads; look-ups on demand."""

    list_filter = (LookUps, *_EventColumns.list_filter)
    list_before_template = "console/parts/look_ups.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[PlatformEvent]:
        """Read as the operations role."""
        return PlatformEvent.objects.using(OPS).order_by("-id")
