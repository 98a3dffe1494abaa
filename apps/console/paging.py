"""Page through tables of any size with a limited count."""

from __future__ import annotations

from typing import Any, cast

from django.core.paginator import Page, Paginator
from django.db.models import IntegerField, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.functional import cached_property
from unfold.admin import TabularInline
from unfold.forms import PaginationInlineFormSet

from apps.console.access import access_of
from apps.contacts.services.inbox import unread_to_count
from apps.tenants.models import Tenant
from apps.tenants.scope import APP

#: A list shows so many rows at most; filters and search lead to the others. Counting further would read them all.
ROWS_COUNTED = 1_000
#: Rows of a table below another row.
ROWS_BELOW = 20


class RowCount(Subquery):
    """How many rows a query finds, limits included."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Pages through the first rows of a table of any size; never counts it."""

    template_name = "console/parts/pagination.html"
    #: Of a list within a tenant: the navigation beside it shows how much of the inbox nobody has read.
    request: HttpRequest | None = None

    @cached_property
    def found(self) -> int:
        """Return how many rows there are, one more than can be shown meaning "more"."""
        rows = cast("QuerySet[Any]", self.object_list)
        shown = rows[: ROWS_COUNTED + 1]
        access = access_of(self.request) if self.request is not None else None
        if access is None or rows.db != APP:
            return shown.count()
        # One statement counts for the list and for the navigation.
        counts = Tenant.objects.filter(id=access.tenant_id).values_list(
            RowCount(shown.values("pk")), RowCount(unread_to_count().values("pk"))
        )
        found, unread = counts.get()
        self.request.unread = unread or 0  # type: ignore[union-attr]
        # A query that is known to find nothing is not sent, and counts as no value.
        return found or 0

    @cached_property
    def count(self) -> int:
        """Return how many rows can be paged through."""
        return min(self.found, ROWS_COUNTED)

    @property
    def more(self) -> bool:
        """Tell whether there are rows beyond the last page."""
        return self.found > ROWS_COUNTED


class BoundedInlineFormSet(PaginationInlineFormSet):  # type: ignore[misc]
    """The first rows of a table below another row."""

    def get_page(self, paginator: Paginator[Any], page: int) -> Page[Any]:
        """Return a page; Unfold's own paginator would count all that there is."""
        self.paginator = BoundedPaginator(paginator.object_list, paginator.per_page)
        return cast("Page[Any]", super().get_page(self.paginator, page))


class BoundedInline(TabularInline):  # type: ignore[misc]
    """A table below another row, in pages."""

    formset = BoundedInlineFormSet
    per_page = ROWS_BELOW
    show_title = False
