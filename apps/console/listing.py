"""Lists and pages of rows: read by the request's role in its tenant, changed by no form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin as DjangoModelAdmin
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import ActionLocation
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter
from unfold.views import ChangeList

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.console import cells
from apps.console.access import actor_of, holds, is_platform_operator
from apps.console.paging import BoundedPaginator
from apps.console.views import console_page
from apps.tenants.models import Role

ROWS_A_PAGE = 50
#: The wide columns of a joined memory.
MEMORY_VECTORS = ("memory__embedding", "memory__lexical")


def filters(*fields: str) -> tuple[Any, ...]:
    """Return a filter by the choices of each field."""
    return tuple((field, ChoicesDropdownFilter) for field in fields)


def filters_by_agent(*fields: str) -> tuple[Any, ...]:
    """Return a filter by agent, and one by the choices of each field."""
    return (("agent", AutocompleteSelectFilter), *filters(*fields))


def _filter_lookups(list_filter: Sequence[Any]) -> set[str]:
    """Return the lookups that the filters of fields make, and the parameters of other filters."""
    names = [entry[0] if isinstance(entry, tuple) else entry for entry in list_filter]
    own: set[str] = {
        str(entry.parameter_name)
        for entry in list_filter
        if isinstance(entry, type) and issubclass(entry, admin.SimpleListFilter)
    }
    return own | {
        f"{name}{lookup}"
        for name in names
        if isinstance(name, str)
        for lookup in ("__exact", "__id__exact", "__isnull")
    }


class BoundedList(ChangeList):  # type: ignore[misc]
    """A list that does not offer to show all, called by what is in it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.title = capfirst(self.opts.verbose_name_plural)

    def get_results(self, request: HttpRequest) -> None:
        """Read the page's rows, and once for all of them what no join brings."""
        super().get_results(request)
        self.full_result_count = self.result_count
        self.model_admin.complete(list(self.result_list))


class NothingToEdit:
    """Lets the tenant's members look, by their role there and by nothing else; no form changes a row."""

    #: The role in the tenant that may look.
    role_to_view: ClassVar[Role] = Role.VIEWER

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the model to those who may look."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let the tenant's members look, by their role there and by nothing else."""
        return holds(request, self.role_to_view)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """No row is made by a form."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """No row is changed by a form."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """No row is deleted by a form."""
        return False


class ConsoleAdmin(NothingToEdit, ModelAdmin):  # type: ignore[misc]
    """Rows of the request's tenant, to be read. What changes them are services, called by a page's own buttons."""

    actions: Any = None
    paginator = BoundedPaginator
    list_per_page = ROWS_A_PAGE
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_filter_submit = True
    list_filter_sheet = False
    compressed_fields = True
    #: Newest first: ids are made in the order of time, and every table's key is (tenant, id).
    ordering: Any = ("-id",)
    #: Parameters of a list's address beside those of its filters: links of other pages lead to them.
    linked_lookups: ClassVar[frozenset[str]] = frozenset()
    #: What holds where the table is empty: shown in place of rows.
    when_empty: ClassVar[str] = ""
    #: The command that shows it, or changes it.
    when_empty_see: ClassVar[str] = ""
    #: Whether a row's page shows the fields too that say nothing of this row.
    shows_empty: ClassVar[bool] = False

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedList]:
        """Name the kind of list."""
        return BoundedList

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Allow the lookups of the list's filters only.

        Django allows every lookup in a field of the model: `__regex` could stop the database, and `__startswith` reads
        columns that no page shows.
        """
        return lookup in self.linked_lookups or lookup in _filter_lookups(self.get_list_filter(request))

    def complete(self, rows: Sequence[Any]) -> None:
        """Read what the cells of these rows show and no join brings, in one query for all; by default nothing is."""

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Read a row for its page, with what its cells show."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            self.complete([row])
        return row

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> list[tuple[Any, Any]]:
        """Leave out of a row's page what is empty in it."""
        found = super().get_fieldsets(request, obj)
        if obj is None or self.shows_empty:
            return list(found)
        kept = [
            (title, {**options, "fields": [name for name in options["fields"] if not _is_empty(obj, name)]})
            for title, options in found
        ]
        return [(title, options) for title, options in kept if options["fields"]]

    def get_paginator(
        self, request: HttpRequest, queryset: QuerySet[Any], per_page: int, *options: Any, **named: Any
    ) -> BoundedPaginator:
        """Let the count of rows answer for the navigation too."""
        paginator = BoundedPaginator(queryset, per_page, *options, **named)
        paginator.request = request
        return paginator

    def get_action_choices(
        self,
        request: HttpRequest,
        default_choices: Any = None,
        action_location: Any = ActionLocation.CHANGE_LIST,
    ) -> list[tuple[str, str]]:
        """Offer the acts. Unfold's own does not know where they are offered, which Django 6.1 asks."""
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
        """Django's own history has no page: what was done is in the audit."""
        raise Http404("what was done to it is in the audit")

    # --- Django would write its own log; acts belong in the audit ----------------------------------------

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
    """Rows that belong to agents, searched by id, and by words within one agent's rows."""

    #: Fields whose words are looked for among the rows of one agent.
    text_fields: ClassVar[tuple[str, ...]] = ()
    #: From the row to its agent.
    agent_path: ClassVar[str] = "agent"
    #: Rows that are read in the same query.
    joined: ClassVar[tuple[str, ...]] = ()
    #: Columns that are not read, because they are wide or secret, and those that only a row's own page reads.
    unread: ClassVar[tuple[str, ...]] = ()
    unread_in_list: ClassVar[tuple[str, ...]] = ()
    # Django shows the search box where this is not empty; `get_search_results` decides what is searched.
    search_fields: Any = ("id",)

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Allow the agent's lookup too, whose rows can be searched by words."""
        return lookup == f"{self.agent_path}__id__exact" or super().lookup_allowed(lookup, value, request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Read rows with what is joined, without what is not read."""
        rows: QuerySet[Any] = super().get_queryset(request)
        if self.joined:
            rows = rows.select_related(*self.joined)
        return rows.defer(*self.unread, *(self.unread_in_list if is_list(request) else ()))

    @property
    def search_help_text(self) -> str:
        """Say what can be searched for."""
        if self.text_fields:
            return "An id, or, once an agent is chosen in the filter, words"
        return "An id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by id; by words only among one agent's rows, because a whole tenant's would be read one by one."""
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            return queryset.filter(pk=UUID(term)), False
        except ValueError:
            pass
        if not self.text_fields or not request.GET.get(f"{self.agent_path}__id__exact"):
            messages.info(request, f"Nothing to search for in {term!r} here: {self.search_help_text}.")
            return queryset.none(), False
        found = queryset.none()
        for field in self.text_fields:
            found |= queryset.filter(**{f"{field}__icontains": term})
        return found, False


class AgentRowsAdmin(FoundByIdAdmin):
    """Rows with an agent of their own, whose name the list shows."""

    joined: ClassVar[tuple[str, ...]] = ("agent",)
    unread: ClassVar[tuple[str, ...]] = ("agent__character", "agent__genome", "agent__pipeline")
    # Of a whole tenant's rows, only the order they were made in has an index.
    sortable_by: Any = ()

    @admin.display(description="agent")
    def agent_link(self, row: Any) -> SafeString:
        """Name whose it is."""
        return cells.link("agents_agent", row.agent_id, row.agent.name)

    @admin.display(description="status")
    def status_badge(self, row: Any) -> SafeString:
        """Show how far it has come."""
        return cells.badge(row.status)


class PageAdmin(ConsoleAdmin):
    """Rows with a page of their own, which a reader fills and a template draws."""

    #: The template; it gets what `read_page` returns as `page`.
    page_template: ClassVar[str]
    #: Reads all that the row's page shows.
    read_page: ClassVar[Any]

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Return what the template gets beside the row."""
        return {
            "title": str(row),
            "page": self.read_page(row),
            "may_operate": holds(request, Role.OPERATOR),
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
        context = self.page_context(request, row)
        return console_page(request, self.page_template, opts=self.opts, original=row, **context)


class OwnPageAdmin(PageAdmin, AgentRowsAdmin):
    """Rows of agents with a page of their own."""


def _is_empty(row: Any, name: Any) -> bool:
    """Tell whether a field of the row holds nothing; a column of our own always says something."""
    try:
        field = row._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return getattr(row, field.attname, None) in (None, "", [], {})


def is_list(request: HttpRequest) -> bool:
    """Tell whether a list of rows is asked for, rather than the page of one."""
    match = request.resolver_match
    return match is not None and str(match.url_name).endswith("_changelist")


class PlatformAdmin(ConsoleAdmin):
    """Rows of the installation as a whole, for those who run it."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Let superusers look."""
        return is_platform_operator(request)
