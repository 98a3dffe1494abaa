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

#: Rows of a list at most, because counting more would scan the table; filters and search find the others.
ROWS_COUNTED = 1_000
#: Rows of a table below another row.
ROWS_BELOW = 20


class RowCount(Subquery):
    """The number of rows of a query, including its limit."""

    template = "(SELECT COUNT(*) FROM (%(subquery)s) counted)"
    output_field = IntegerField()


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Pages through the first rows of a table of any size, without counting all of them."""

    template_name = "console/parts/pagination.html"
    #: The request of a list within a tenant, for which unread messages are counted too, for the navigation.
    request: HttpRequest | None = None

    @cached_property
    def row_count(self) -> int:
        """Return the number of rows, up to one more than can be shown."""
        rows = cast("QuerySet[Any]", self.object_list)
        # Unordered: any index will do.
        shown = rows.order_by()[: ROWS_COUNTED + 1]
        access = access_of(self.request) if self.request is not None else None
        if access is None or rows.db != APP:
            return shown.count()
        # One statement counts for the list and for the navigation.
        counts = Tenant.objects.filter(id=access.tenant_id).values_list(
            RowCount(shown.values("pk")), RowCount(unread_to_count().values("pk"))
        )
        row_count, unread = counts.get()
        self.request.unread = unread or 0  # type: ignore[union-attr]
        # Django does not send queries that it knows to be empty; their count is None.
        return row_count or 0

    @cached_property
    def count(self) -> int:
        """Return the number of rows that can be shown."""
        return min(self.row_count, ROWS_COUNTED)

    @property
    def has_more(self) -> bool:
        """Return whether there are rows beyond the last page."""
        return self.row_count > ROWS_COUNTED


class BoundedInlineFormSet(PaginationInlineFormSet):  # type: ignore[misc]
    """The first rows of a table below another row."""

    def get_page(self, paginator: Paginator[Any], page: int) -> Page[Any]:
        """Return a page; Unfold's own paginator would count all rows."""
        self.paginator = BoundedPaginator(paginator.object_list, paginator.per_page)
        return cast("Page[Any]", super().get_page(self.paginator, page))


class BoundedInline(TabularInline):  # type: ignore[misc]
    """A table below another row, in pages."""

    formset = BoundedInlineFormSet
    per_page = ROWS_BELOW
    show_title = False
