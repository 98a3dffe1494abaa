"""Base classes of admin pages: members of a tenant read rows according to their role; no form changes a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin as DjangoModelAdmin
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import ActionLocation
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.console import cells
from apps.console.access import Right, actor_of, has_right, is_platform_operator
from apps.console.list_export import ListExport
from apps.console.live import REFRESH_S, live_parts
from apps.console.paging import BoundedPaginator
from apps.console.views import console_page
from apps.console.windows import BoundedList
from apps.tenants.sessions import is_live_request
from arbor.ids import read_id

ROWS_A_PAGE = 50
#: Columns that lead to another row's page: the link to the row's own page is in the first column that is none of them.
LINKED_COLUMNS = frozenset(
    {"agent_link", "goal_link", "memory_link", "plan_link", "belief_shown", "memory_shown"}
)
#: The wide columns of a joined memory.
MEMORY_VECTORS = ("memory__embedding", "memory__lexical")


def filters(*fields: str) -> tuple[Any, ...]:
    """Return a filter by the choices of each field."""
    return tuple((field, ChoicesDropdownFilter) for field in fields)


def filters_by_agent(*fields: str) -> tuple[Any, ...]:
    """Return a filter by agent, and one by the choices of each field."""
    return (("agent", AutocompleteSelectFilter), *filters(*fields))


def _filter_lookups(list_filter: Sequence[Any]) -> set[str]:
    """Return the parameters of filters in the address of a list: lookups of fields, and names of other filters."""
    lookups: set[str] = set()
    for entry in list_filter:
        name = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(name, str):
            lookups |= {f"{name}{lookup}" for lookup in ("__exact", "__id__exact", "__isnull")}
        else:
            lookups.add(name.parameter_name)
    return lookups


class ReadOnly:
    """Lets members of the tenant read rows; no form of Django creates, changes or deletes them."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the model to people who may read its rows."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow members."""
        return has_right(request, Right.VIEW)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: no form creates rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: no form changes rows."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: no form deletes rows."""
        return False


class ConsoleAdmin(ReadOnly, ListExport, ModelAdmin):  # type: ignore[misc]
    """Read-only pages of rows of the request's tenant. Buttons of the pages call services, which change rows."""

    actions: Any = None
    paginator = BoundedPaginator
    list_per_page = ROWS_A_PAGE
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_filter_submit = True
    list_filter_sheet = False
    #: Unfold's templates look this up for each row.
    list_sections: Any = ()
    compressed_fields = True
    #: Newest first: ids are ordered by time, and the key of each table is (tenant, id).
    ordering: Any = ("-id",)
    #: Parameters of a list's address that links of other pages use, beside those of its filters.
    linked_lookups: ClassVar[frozenset[str]] = frozenset()
    #: Whether filters without an index search the latest rows only.
    filters_latest: ClassVar[bool] = False
    #: (parameter, value) of filters with an index.
    indexed_lookups: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    #: The text shown for an empty table.
    when_empty: ClassVar[str] = ""
    #: The command shown with that text.
    when_empty_command: ClassVar[str] = ""
    #: Whether the list updates by itself.
    is_live: ClassVar[bool] = False
    #: Whether a row's page also shows empty fields.
    shows_empty: ClassVar[bool] = False

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedList]:
        """Return the class of the list."""
        return BoundedList

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list; only its rows if the page itself asks for an update."""
        live = {"live_s": REFRESH_S} if self.is_live and request.method == "GET" else {}
        response: HttpResponse = super().changelist_view(request, {**live, **(extra_context or {})})
        if live and is_live_request(request) and isinstance(response, TemplateResponse):
            response.template_name = "console/parts/live_list.html"
        return response

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Allow the lookups of the list's filters only.

        Django allows every lookup in a field of the model: `__regex` could stop the database, and `__startswith` reads
        columns that no page shows.
        """
        return lookup in self.linked_lookups or lookup in _filter_lookups(self.get_list_filter(request))

    def get_list_display_links(self, request: HttpRequest, list_display: Sequence[Any]) -> Any:
        """Return the column with the link to the row's page: the first whose cells have no link of their own."""
        links = super().get_list_display_links(request, list_display)
        if self.list_display_links != () or links[0] not in LINKED_COLUMNS:
            return links
        return [next(name for name in list_display if name not in LINKED_COLUMNS)]

    def complete(self, rows: Sequence[Any]) -> None:
        """Read the data of cells that no join can read, in one query for all rows; by default none."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Read a row for its page, completed for its cells."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            self.complete([row])
        return row

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[tuple[Any, Any]]:
        """Return the fields of a row's page without empty ones."""
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None or self.shows_empty:
            return list(fieldsets)
        with_values = [
            (title, {**options, "fields": [name for name in options["fields"] if not _is_empty(obj, name)]})
            for title, options in fieldsets
        ]
        return [(title, options) for title, options in with_values if options["fields"]]

    def get_paginator(
        self, request: HttpRequest, queryset: QuerySet[Any], per_page: int, *options: Any, **named: Any
    ) -> BoundedPaginator:
        """Return a paginator that counts rows and the badges of the sidebar in one query."""
        paginator = BoundedPaginator(queryset, per_page, *options, **named)
        paginator.request = request
        return paginator

    def get_action_choices(
        self,
        request: HttpRequest,
        default_choices: Any = None,
        action_location: Any = ActionLocation.CHANGE_LIST,
    ) -> list[tuple[str, str]]:
        """Return the acts of the list. Unfold's method lacks the parameter `action_location` of Django 6.1."""
        choices: list[tuple[str, str]] = DjangoModelAdmin.get_action_choices(
            self, request, default_choices or [("", "Choose an act")], action_location
        )
        return choices

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Refuse Django's history: acts are in the audit log."""
        raise Http404("the history of this row is in the audit log")

    # --- Acts are recorded in the audit log instead of Django's own log ----------------------------------

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> None:
        """Record an addition."""
        self._record(request, obj, "added", message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> None:
        """Record a change."""
        self._record(request, obj, "changed", message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Record deletions."""
        for row in queryset:
            self._record(request, row, "deleted", "")

    def _record(self, request: HttpRequest, row: Model, verb: str, message: Any) -> None:
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor_of(request),
            message=f"{verb} the {row._meta.verbose_name} {row}",
            detail={"model": row._meta.label, "id": str(row.pk), "message": message},
        )


class FoundByIdAdmin(ConsoleAdmin):
    """Pages of rows of agents; a search finds rows by id, and by words within the rows of one agent."""

    #: Fields searched for words, within the rows of one agent.
    text_fields: ClassVar[tuple[str, ...]] = ()
    #: The lookup path from the row to its agent.
    agent_path: ClassVar[str] = "agent"
    #: Relations joined in the same query.
    joined: ClassVar[tuple[str, ...]] = ()
    # Django shows the search box where this is not empty; `get_search_results` decides what is searched.
    search_fields: Any = ("id",)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Allow the agent's lookup too, whose rows can be searched by words."""
        return lookup == f"{self.agent_path}__id__exact" or super().lookup_allowed(lookup, value, request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Read rows with the joined relations and without the deferred columns."""
        rows: QuerySet[Any] = super().get_queryset(request)
        if self.joined:
            rows = rows.select_related(*self.joined)
        return rows.defer(*self.deferred, *(self.deferred_in_list if is_list(request) else ()))

    @property
    def search_help_text(self) -> str:
        """Return the hint below the search box."""
        if self.text_fields:
            return "An id, or, once an agent is chosen in the filter, words"
        return "An id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by id, or by words within one agent's rows: a search in a whole tenant would scan all rows."""
        term = search_term.strip()
        if not term:
            return queryset, False
        row_id = read_id(term)
        if row_id is not None:
            return queryset.filter(pk=row_id), False
        if not self.text_fields or not request.GET.get(f"{self.agent_path}__id__exact"):
            messages.info(request, f"Nothing to search for in {term!r} here: {self.search_help_text}.")
            return queryset.none(), False
        matches = queryset.none()
        for field in self.text_fields:
            matches |= queryset.filter(**{f"{field}__icontains": term})
        return matches, False


class AgentRowsAdmin(FoundByIdAdmin):
    """Pages of rows with a reference to their agent, which the list shows."""

    joined: ClassVar[tuple[str, ...]] = ("agent",)
    deferred: ClassVar[tuple[str, ...]] = ("agent__character", "agent__genome", "agent__pipeline")
    filters_latest = True
    # Only the order of creation has an index over a whole tenant.
    sortable_by: Any = ()

    @admin.display(description="agent")
    def agent_link(self, row: Any) -> SafeString | str:
        """Link the agent; "all agents" for a row without one."""
        return cells.link("agents_agent", row.agent_id, row.agent.name) if row.agent_id else "all agents"

    @admin.display(description="status")
    def status_badge(self, row: Any) -> SafeString:
        """Show the status."""
        return cells.badge(row.status)


class FoundByAgentAdmin(AgentRowsAdmin):
    """Pages of tables with one row for each agent, found by the agent's name."""

    @property
    def search_help_text(self) -> str:
        """Return the hint below the search box."""
        return "An agent's name"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by the agent's name."""
        term = search_term.strip()
        return (queryset.filter(agent__name__icontains=term) if term else queryset), False


class PageAdmin(ConsoleAdmin):
    """Rows with a page of their own, which a function reads and a template renders."""

    #: The template, which gets the result of `read_page` as `page`.
    page_template: ClassVar[str]
    #: The function that reads the data of the row's page; by default the row is all data.
    read_page: ClassVar[Any] = staticmethod(lambda row: row)
    #: The template of the parts that update, and the function that reads their data; empty: the page does not update.
    live_template: ClassVar[str] = ""
    read_parts: ClassVar[Any] = None

    def live_interval(self, row: Any) -> int:
        """Return the seconds between two updates of the row's page; 0 if the row does not change any more."""
        return REFRESH_S if self.live_template else 0

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return the context of the template, beside the row."""
        return {
            "title": str(row),
            "page": self.read_page(row),
            "may_operate": has_right(request, Right.OPERATE),
        }

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the row's own page."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, object_id)
        if row is None:
            missing: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
            return missing
        live_s = self.live_interval(row)
        if self.live_template and is_live_request(request):
            return live_parts(
                request, self.live_template, ended=not live_s, page=type(self).read_parts(row), original=row
            )
        context = self.page_context(request, row)
        return console_page(
            request, self.page_template, opts=self.opts, original=row, live_s=live_s, **context
        )


class OwnPageAdmin(PageAdmin, AgentRowsAdmin):
    """Rows of agents with a page of their own."""


def _is_empty(row: Any, name: Any) -> bool:
    """Return whether a field of the row is empty; computed columns never are."""
    try:
        field = row._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return getattr(row, field.attname, None) in (None, "", [], {})


def is_list(request: HttpRequest) -> bool:
    """Return whether the request is for a list or its export, not for the page of a row."""
    match = request.resolver_match
    return match is not None and str(match.url_name).endswith(("_changelist", "_export"))


class PlatformAdmin(ConsoleAdmin):
    """Pages of rows of the whole installation, for superusers."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Allow superusers."""
        return is_platform_operator(request)
